// First in, first out, in one piece of memory that is used again.
#pragma once

#include <cstddef>
#include <vector>

namespace insight_trace::engine {

template <class T> class Fifo {
  public:
    bool empty() const { return head_ == items_.size(); }
    size_t size() const { return items_.size() - head_; }
    const T &front() const { return items_[head_]; }
    const T &back() const { return items_.back(); }
    const T &operator[](size_t i) const { return items_[head_ + i]; } // from the front
    T &operator[](size_t i) { return items_[head_ + i]; }
    void drop() { ++head_; }
    void push(const T &item) {
        constexpr size_t kWorth = 64; // what is left behind is removed when it is more than what is there
        if (empty()) {
            items_.clear();
            head_ = 0;
        } else if (head_ > kWorth && head_ * 2 > items_.size()) {
            items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
        items_.push_back(item);
    }
    T pop() { return items_[head_++]; }
    // The last pop did not happen; nothing was pushed since.
    void put_back() { --head_; }

  private:
    std::vector<T> items_;
    size_t head_ = 0;
};

} // namespace insight_trace::engine
