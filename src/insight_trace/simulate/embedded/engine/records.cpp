#include "records.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

static constexpr size_t kMaxRows = 0xfffffff0u;

Records::Records(const std::string &path) {
    if (!path.empty()) {
        file_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file_ < 0) fail(Fault::Environment, {}, "cannot write %s: %s", path.c_str(), strerror(errno));
    }
    grow();
}

Records::~Records() {
    if (rows_) munmap(rows_, size_t(capacity_) * sizeof(Record));
    if (file_ >= 0) ::close(file_);
}

void Records::grow() {
    size_t wanted = capacity_ ? size_t(capacity_) * 2 : 1u << 14;
    if (wanted > kMaxRows) fail(Fault::NotSupported, {}, "more than %zu instructions in one run", kMaxRows);
    size_t bytes = wanted * sizeof(Record);
    if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) != 0)
        fail(Fault::Environment, {}, "no room for %zu instructions: %s", wanted, strerror(errno));
    // taken now: a page of a full file system that is only found missing when it is written ends the process
    const size_t had = size_t(capacity_) * sizeof(Record);
    const int room =
        file_ < 0 ? 0 : posix_fallocate(file_, static_cast<off_t>(had), static_cast<off_t>(bytes - had));
    if (room == ENOSPC || room == EDQUOT || room == EFBIG)
        fail(Fault::Environment, {}, "no room for %zu instructions: %s", wanted, strerror(room));
    void *mapped = MAP_FAILED;
    if (rows_) {
        mapped = mremap(rows_, size_t(capacity_) * sizeof(Record), bytes, MREMAP_MAYMOVE);
    } else {
        int flags = file_ >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
        mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_, 0);
    }
    if (mapped == MAP_FAILED)
        fail(Fault::Environment, {}, "no memory for %zu instructions: %s", wanted, strerror(errno));
    rows_ = static_cast<Record *>(mapped);
    capacity_ = static_cast<uint32_t>(wanted);
}

uint32_t Records::append(const Record &record) {
    if (count_ == capacity_) grow();
    rows_[count_] = record;
    return count_++;
}

uint32_t Records::site(Site at, Instr instr, PipeId pipe) {
    Key key{at.file, (uint64_t(at.line) << 24) | (uint64_t(instr) << 8) | uint64_t(pipe)};
    Recent &recent = recent_[Hash()(key) >> 56];
    if (recent.key == key && at.file) return recent.site;
    auto [found, added] = index_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
    if (added) sites_.push_back({at.file, at.line, instr, pipe});
    recent = {key, found->second};
    return found->second;
}

void Records::close() {
    if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(size_t(count_) * sizeof(Record))) != 0)
        fail(Fault::Environment, {}, "cannot finish the instruction file: %s", strerror(errno));
}

} // namespace insight_trace::engine
