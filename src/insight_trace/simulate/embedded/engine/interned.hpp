// Rows that repeat, each kept once.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace insight_trace::engine {

// From hashes to places: slots one after the other, at least half of them free.
class HashIndex {
  public:
    // The first place of this hash that `is` it; `added` if there is none, which it keeps.
    template <class Same> uint32_t find_or_add(uint64_t hash, uint32_t added, Same is) {
        if (count_ * 2 >= slots_.size()) grow();
        const size_t last = slots_.size() - 1;
        for (size_t at = hash & last;; at = (at + 1) & last) {
            Slot &slot = slots_[at];
            if (!slot.used) {
                slot = {hash, added, true};
                ++count_;
                return added;
            }
            if (slot.hash == hash && is(slot.place)) return slot.place;
        }
    }

  private:
    struct Slot {
        uint64_t hash = 0;
        uint32_t place = 0;
        bool used = false;
    };
    void grow() {
        std::vector<Slot> old(slots_.empty() ? 256 : slots_.size() * 2);
        old.swap(slots_);
        const size_t last = slots_.size() - 1;
        for (const Slot &slot : old) {
            if (!slot.used) continue;
            size_t at = slot.hash & last;
            while (slots_[at].used) at = (at + 1) & last;
            slots_[at] = slot;
        }
    }
    std::vector<Slot> slots_;
    size_t count_ = 0;
};

// Two words at a time, so that one multiplication does not wait for the other.
inline uint64_t hash_words(const uint64_t *words, size_t count) {
    uint64_t even = 0x9e3779b97f4a7c15ull, odd = count;
    for (size_t i = 0; i + 1 < count; i += 2) {
        even = (even ^ words[i]) * 0x9e3779b97f4a7c15ull;
        odd = (odd ^ words[i + 1]) * 0xc2b2ae3d27d4eb4full;
        even ^= even >> 32;
        odd ^= odd >> 29;
    }
    if (count % 2) even = (even ^ words[count - 1]) * 0x9e3779b97f4a7c15ull;
    uint64_t mixed = (even ^ (odd << 1)) * 0xff51afd7ed558ccdull;
    return mixed ^ (mixed >> 32);
}

// Rows of plain data without padding.
template <class Row> class Interned {
    static constexpr size_t kWords = sizeof(Row) / 8;
    static_assert(sizeof(Row) % 8 == 0);
    struct Words {
        uint64_t word[kWords];
    };

  public:
    uint32_t index_of(const Row &row) {
        Words words;
        memcpy(&words, &row, sizeof words);
        const uint64_t hash = hash_words(words.word, kWords);
        uint32_t &recent = recent_[hash >> 56];
        if (recent < rows_.size() && same(recent, words)) return recent;
        const auto next = static_cast<uint32_t>(rows_.size());
        recent = index_.find_or_add(hash, next, [&](uint32_t place) { return same(place, words); });
        if (recent == next) rows_.push_back(row);
        return recent;
    }
    const std::vector<Row> &rows() const { return rows_; }

  private:
    bool same(uint32_t place, const Words &words) const {
        Words other;
        memcpy(&other, &rows_[place], sizeof other);
        uint64_t differs = 0;
        for (size_t i = 0; i < kWords; ++i) differs |= other.word[i] ^ words.word[i];
        return !differs;
    }
    std::vector<Row> rows_;
    HashIndex index_;
    std::array<uint32_t, 256> recent_{};
};

} // namespace insight_trace::engine
