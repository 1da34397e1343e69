// The recording: a fixed-size row for each argument at each stage, and the payload at a place in the file
// that was chosen when the task was submitted, so that the file does not depend on the order of execution.
#pragma once

#include <string>
#include <vector>

#include "job.hpp"

namespace insight_trace::capture {

enum class Role : uint8_t { Input, Output, InOut };
enum class Stage : uint8_t { Before, After };

// Read by capture/dump_rows.py; the layout is the same there.
struct Row {
    uint64_t task_id;
    uint64_t start_offset;
    uint64_t value;
    uint64_t bin_offset;
    uint64_t bin_size;
    uint64_t pointer;
    uint64_t buffer_size;
    uint32_t shape[MAX_TENSOR_DIMS];
    uint32_t strides[MAX_TENSOR_DIMS];
    int32_t func[3];
    uint32_t dispatch_id;
    uint32_t block_idx;
    uint32_t block_count;
    uint16_t core_id;
    uint8_t func_count;
    uint8_t arg_index;
    uint8_t role;
    uint8_t stage;
    uint8_t scalar;
    uint8_t dtype;
    uint8_t ndims;
    uint8_t contiguous;
    uint8_t ambiguous;
    uint8_t partial;   // taken from a task that did not complete
    uint8_t core_type; // 0 aic, 1 aiv, 2 mix
    uint8_t subtask;
    uint8_t reserved[2];
    uint64_t cycles; // of the whole task, in rows of what it left
};
static_assert(sizeof(Row) == 144, "the reader has this size");

class Recorder {
  public:
    void open(const Job &job);
    bool on() const { return level_ > 0; }
    // Whether an argument gets a row, and whether the row has payload.
    bool wants(bool marked) const { return level_ == 2 || level_ == 3 || (level_ == 1 && marked); }
    bool wants_payload(bool marked) const {
        return !bare_ && (level_ == 2 || ((level_ == 1 || level_ == 3) && marked));
    }
    // Of the payload file; more than the job allows is a failure.
    uint64_t reserve(uint64_t bytes);
    void payload(const ChipTensor &tensor, uint64_t offset);
    void append(const Row &row);
    void flush();
    uint64_t rows() const { return count_; }
    bool full() const { return next_ > most_; } // there was more to record than the job allows

  private:
    int level_ = 0;
    bool bare_ = false; // what tasks are is asked for, not what they work on
    uint64_t most_ = UINT64_MAX;
    int rows_ = -1, bytes_ = -1;
    uint64_t next_ = 0, count_ = 0;
    std::vector<Row> buffer_;
    std::vector<uint8_t> gathered_;
};

} // namespace insight_trace::capture
