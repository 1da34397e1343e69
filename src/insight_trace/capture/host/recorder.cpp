#include "recorder.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace insight_trace::capture {

using engine::fail;
using engine::Fault;

static constexpr size_t kBufferedRows = 512;

static int create(const std::string &path) {
    int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) fail(Fault::Environment, {}, "cannot write %s: %s", path.c_str(), strerror(errno));
    return file;
}

void Recorder::open(const Job &job) {
    level_ = job.level;
    bare_ = !job.graph_path.empty();
    most_ = job.most_payload;
    if (!on()) return;
    rows_ = create(job.records_path);
    bytes_ = create(job.payload_path);
    buffer_.reserve(kBufferedRows);
}

uint64_t Recorder::reserve(uint64_t bytes) {
    uint64_t offset = next_;
    next_ += bytes;
    if (next_ > most_)
        fail(Fault::Environment, {}, "the payload grows past %.3g GB, which is all there may be here",
             double(most_) * 1e-9);
    return offset;
}

static void write_at(int file, const uint8_t *bytes, uint64_t count, uint64_t offset) {
    while (count) {
        ssize_t done = pwrite(file, bytes, std::min<uint64_t>(count, 1u << 30), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail(Fault::Environment, {}, "the dump cannot be written: %s", strerror(errno));
        bytes += done;
        offset += static_cast<uint64_t>(done);
        count -= static_cast<uint64_t>(done);
    }
}

// The view's elements one after the other: whole runs where the innermost ones lie side by side.
void Recorder::payload(const ChipTensor &tensor, uint64_t offset) {
    uint64_t size = get_element_size(tensor.dtype), total = tensor.nbytes();
    auto *start = reinterpret_cast<const uint8_t *>(tensor.buffer.addr) + tensor.start_offset * size;
    if (!total) return;
    if (tensor.is_contiguous) return write_at(bytes_, start, total, offset);
    gathered_.resize(total);
    uint8_t *to = gathered_.data();
    uint32_t last = tensor.ndims - 1;
    bool run = tensor.strides[last] == 1;
    uint64_t piece = run ? tensor.shapes[last] * size : size;
    uint32_t outer = run ? last : tensor.ndims;
    uint32_t index[MAX_TENSOR_DIMS] = {};
    while (true) {
        uint64_t at = 0;
        for (uint32_t d = 0; d < outer; ++d) at += uint64_t(index[d]) * tensor.strides[d];
        memcpy(to, start + at * size, piece);
        to += piece;
        int d = static_cast<int>(outer) - 1;
        for (; d >= 0; --d) {
            if (++index[d] < tensor.shapes[d]) break;
            index[d] = 0;
        }
        if (d < 0) break;
    }
    write_at(bytes_, gathered_.data(), total, offset);
}

void Recorder::append(const Row &row) {
    buffer_.push_back(row);
    ++count_;
    if (buffer_.size() == kBufferedRows) flush();
}

// A row is only written when its payload is, so a reader may believe every whole row of the file.
void Recorder::flush() {
    const auto *bytes = reinterpret_cast<const uint8_t *>(buffer_.data());
    uint64_t left = buffer_.size() * sizeof(Row);
    while (left) {
        ssize_t done = write(rows_, bytes, left);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) fail(Fault::Environment, {}, "the dump cannot be written: %s", strerror(errno));
        bytes += done;
        left -= static_cast<uint64_t>(done);
    }
    buffer_.clear();
}

} // namespace insight_trace::capture
