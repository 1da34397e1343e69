// Rows of all cores in one growing, memory-mapped file; sites and names in small tables beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "insight_trace/abi.hpp"
#include "parameters.hpp"
#include "record.hpp"

namespace insight_trace::engine {

struct SiteRow {
    const char *file;
    uint32_t line;
    Instr instr;
    PipeId pipe;
};

class Records {
  public:
    explicit Records(const std::string &path); // "" keeps them in memory only
    ~Records();
    Records(const Records &) = delete;

    uint32_t append(const Record &record);
    Record &operator[](uint32_t row) { return rows_[row]; }
    uint32_t size() const { return count_; }
    uint32_t site(Site at, Instr instr, PipeId pipe);
    const std::vector<SiteRow> &sites() const { return sites_; }
    // Cuts the file to the rows written.
    void close();

  private:
    void grow();

    int file_ = -1;
    Record *rows_ = nullptr;
    uint32_t count_ = 0;
    uint32_t capacity_ = 0;
    std::vector<SiteRow> sites_;
    struct Key {
        const char *file;
        uint64_t rest;
        bool operator==(const Key &other) const { return file == other.file && rest == other.rest; }
    };
    struct Hash {
        size_t operator()(const Key &key) const {
            return (reinterpret_cast<size_t>(key.file) ^ (key.rest * 0x9e3779b97f4a7c15ull)) *
                   0xff51afd7ed558ccdull;
        }
    };
    std::unordered_map<Key, uint32_t, Hash> index_;
    // Kernels come back to the same few lines: what was found last, by its place in the hash.
    struct Recent {
        Key key{nullptr, 0};
        uint32_t site = 0;
    };
    std::array<Recent, 256> recent_{};
};

} // namespace insight_trace::engine
