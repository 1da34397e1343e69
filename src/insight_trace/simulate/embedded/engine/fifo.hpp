// First in, first out, in one piece of memory that is used again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace insight_trace::engine {

template <class T> class Fifo {
  public:
    bool empty() const { return head_ == end_; }
    size_t size() const { return end_ - head_; }
    const T &front() const { return items_[head_]; }
    const T &back() const { return items_[end_ - 1]; }
    const T &operator[](size_t i) const { return items_[head_ + i]; } // from the front
    T &operator[](size_t i) { return items_[head_ + i]; }
    void drop() { ++head_; }
    void push(const T &item) { next() = item; }
    // One more at the end, as whatever had its place left it. A processor waits where it copies, as a few
    // wide pieces, what it has just written as many narrow ones: who makes an item writes it here.
    T &next() {
        if (empty()) head_ = end_ = 0;
        if (end_ == items_.size()) make_room();
        return items_[end_++];
    }
    T pop() { return items_[head_++]; }
    // The last pop did not happen; nothing was pushed since.
    void put_back() { --head_; }

  private:
    void make_room() {
        constexpr size_t kLeast = 64;
        if (head_ > kLeast && head_ * 2 > end_) { // what is left behind is more than what is there
            std::move(items_.begin() + static_cast<std::ptrdiff_t>(head_), items_.end(), items_.begin());
            end_ -= head_;
            head_ = 0;
        } else {
            items_.resize(items_.empty() ? kLeast / 4 : items_.size() * 2);
        }
    }

    std::vector<T> items_; // those from head_ to end_ are there
    size_t head_ = 0, end_ = 0;
};

} // namespace insight_trace::engine
