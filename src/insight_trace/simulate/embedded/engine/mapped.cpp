#include "mapped.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

static constexpr size_t kMaxRows = 0xfffffff0u, kStep = 4u << 20, kMuch = 64u << 20;
static constexpr int kPopulate = 23; // MADV_POPULATE_WRITE, younger than some headers

int created_file(const std::string &path) {
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail(Fault::Environment, {}, "cannot write %s: %s", path.c_str(), strerror(errno));
    return file;
}

MappedBytes::MappedBytes(const std::string &path, size_t row_bytes) : row_bytes_(row_bytes) {
    if (!path.empty()) file_ = created_file(path);
    grow();
}

MappedBytes::~MappedBytes() {
    if (bytes_ && !elsewhere_) munmap(bytes_, capacity_ * row_bytes_);
    if (file_ >= 0) ::close(file_);
}

void MappedBytes::grow() {
    if (elsewhere_) fail(Fault::OurBug, {}, "a row is added to a table of another process");
    // a large table grows by a part: room that is taken and not used costs as much as what is
    const size_t more = std::max(kStep / row_bytes_, capacity_ / 8);
    size_t wanted = capacity_ ? capacity_ + std::min(capacity_, more) : 1u << 14;
    if (wanted > kMaxRows) fail(Fault::NotSupported, {}, "more than %zu instructions in one run", kMaxRows);
    size_t bytes = wanted * row_bytes_;
    if (file_ >= 0 && (in_files_ += bytes - capacity_ * row_bytes_) > room && room) without_room();
    if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) != 0)
        fail(Fault::Environment, {}, "no room for %zu instructions: %s", wanted, strerror(errno));
    // taken now: a page of a full file system that is only found missing when it is written ends the process
    const size_t had = capacity_ * row_bytes_;
    const int room =
        file_ < 0 ? 0 : posix_fallocate(file_, static_cast<off_t>(had), static_cast<off_t>(bytes - had));
    if (room == ENOSPC || room == EDQUOT || room == EFBIG)
        fail(Fault::Environment, {}, "no room for %zu instructions: %s", wanted, strerror(room));
    void *mapped = MAP_FAILED;
    if (bytes_) {
        mapped = mremap(bytes_, capacity_ * row_bytes_, bytes, MREMAP_MAYMOVE);
    } else {
        int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_, 0);
    }
    if (mapped == MAP_FAILED)
        fail(Fault::Environment, {}, "no memory for %zu instructions: %s", wanted, strerror(errno));
    bytes_ = static_cast<uint8_t *>(mapped);
    release();
    // its pages come together, not one by one as they are written; a system that cannot do so does without
    if (capacity_ && file_ >= 0) {
        const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
        const size_t first = had / page * page;
        madvise(bytes_ + first, bytes - first, kPopulate);
    } else if (capacity_) { // not before: each of many cores would have a large page cleared for a few rows
        madvise(bytes_, bytes, MADV_HUGEPAGE);
    }
    capacity_ = wanted;
}

void MappedBytes::release() const {
    const size_t bytes = capacity_ * row_bytes_;
    if (file_ >= 0 && bytes > kMuch) madvise(bytes_, bytes, MADV_DONTNEED);
    if (!elsewhere_ || bytes < kStep) return;
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<size_t>(bytes_);
    const size_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

void MappedBytes::look_at(void *rows, size_t count) {
    if (bytes_ && !elsewhere_) munmap(bytes_, capacity_ * row_bytes_);
    bytes_ = static_cast<uint8_t *>(rows);
    capacity_ = count;
    elsewhere_ = true;
}

void MappedBytes::forget() {
    if (file_ < 0 && !elsewhere_) madvise(bytes_, capacity_ * row_bytes_, MADV_DONTNEED);
}

bool MappedBytes::cut(size_t rows) noexcept {
    return file_ < 0 || ftruncate(file_, static_cast<off_t>(rows * row_bytes_)) == 0;
}

void MappedBytes::close(size_t rows) {
    if (!cut(rows)) fail(Fault::Environment, {}, "cannot finish the instruction file: %s", strerror(errno));
    if (file_ >= 0) in_files_ -= capacity_ * row_bytes_; // who takes them over gives them back row by row
}

} // namespace insight_trace::engine
