// The bytes of one on-chip memory of one core, at an address that a kernel can treat as the device's.
//
// Tile libraries cut on-chip addresses to 32 bits, shift them into register words and dereference them. So
// each memory of each core begins at a multiple of a MiB below 4 GiB: the low 20 bits of an address are the
// offset.
#pragma once

#include <cstdint>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

constexpr uint64_t kLocalBits = 20, kLocalSpan = 1ull << kLocalBits; // no modelled memory is larger
constexpr uint64_t kLocalBase = 0x1000'0000, kSpacesPerCore = 16;
// Up to 2 GiB: AddressSanitizer keeps its own records from there on.
constexpr uint64_t kLocalEnd = 0x7fff'0000;

// What an address below 4 GiB is: a byte of a memory of a core.
struct LocalPlace {
    bool known;
    uint16_t core;
    Space space;
    uint64_t offset;
};
inline LocalPlace local_place(uint64_t address) {
    if (address - kLocalBase >= kLocalEnd - kLocalBase) return {};
    const uint64_t memory = (address - kLocalBase) >> kLocalBits;
    const uint64_t space = memory % kSpacesPerCore;
    if (space >= static_cast<uint64_t>(Space::GM)) return {};
    return {true, static_cast<uint16_t>(memory / kSpacesPerCore), static_cast<Space>(space),
            address & (kLocalSpan - 1)};
}

class LocalMemory {
  public:
    LocalMemory() = default;
    LocalMemory(const LocalMemory &) = delete;
    LocalMemory &operator=(const LocalMemory &) = delete;
    ~LocalMemory();
    // Takes its place, every byte `content`. Where that is taken (a second chip in this process, more cores
    // than fit) it lies elsewhere, and kernels that form addresses of their own do not find it.
    void map(uint16_t core, Space space, uint64_t bytes, uint8_t content);
    uint8_t *get() const { return bytes_; }
    explicit operator bool() const { return bytes_ != nullptr; }

  private:
    uint8_t *bytes_ = nullptr;
    uint64_t size_ = 0;
};

} // namespace insight_trace::engine
