// Global memory of a run: buffers of the scene, buffers the runtime allocates, and who uses which bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job.hpp"

namespace insight_trace::capture {

struct Access {
    uint64_t begin, end; // addresses
    uint32_t task;       // number of a task
    bool writes;
};

// A view that a task writes, for who comes after it.
struct Written {
    uint32_t task;
    ChipTensor tensor;
};

struct Buffer {
    uint64_t size = 0;
    std::string name;
    std::vector<Access> accesses;
    std::vector<Written> written;
    bool hollow = false; // a task that was not run would have written it
};

inline std::pair<uint64_t, uint64_t> byte_range(const ChipTensor &tensor) {
    uint64_t size = get_element_size(tensor.dtype);
    uint64_t begin = tensor.buffer.addr + tensor.start_offset * size;
    return {begin, begin + tensor.extent_elem_cache * size};
}

class Buffers {
  public:
    void start(const Job &job);
    // The buffer that holds an address, or null.
    Buffer *find(uint64_t address);
    uint64_t allocate(uint64_t bytes); // zeroed, in a place that nothing had before
    uint64_t heap_position();          // page-aligned, for a scope that begins or ends
    void release(uint64_t begin, uint64_t end);

  private:
    std::map<uint64_t, Buffer> by_address_;
    uint64_t next_ = 0, end_ = 0;
};

} // namespace insight_trace::capture
