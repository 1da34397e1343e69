// Tensors as an orchestration handles them: a buffer, and a strided view into it. 128 bytes, the layout that
// kernels read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "data_type.h"
#include "insight_trace/task_call.hpp"

struct PTO2TaskId {
    uint64_t raw;
    static constexpr PTO2TaskId make(uint8_t ring, uint32_t local) {
        return {(static_cast<uint64_t>(ring) << 32) | local};
    }
    static constexpr PTO2TaskId invalid() { return {~0ull}; }
    constexpr uint8_t ring() const { return static_cast<uint8_t>(raw >> 32); }
    constexpr uint32_t local() const { return static_cast<uint32_t>(raw); }
    constexpr bool is_valid() const { return raw != ~0ull; }
    constexpr bool is_invalid() const { return raw == ~0ull; }
    constexpr bool operator==(const PTO2TaskId &other) const { return raw == other.raw; }
    constexpr bool operator!=(const PTO2TaskId &other) const { return raw != other.raw; }
};

enum class TensorArgType : int32_t {
    INPUT = 0,
    OUTPUT = 1, // the runtime allocates it
    INOUT = 2,
    OUTPUT_EXISTING = 3,
    NO_DEP = 4, // no part of dependency tracking
};

struct alignas(64) ChipTensor {
    PTOBufferHandle buffer;
    PTO2TaskId owner_task_id;
    uint64_t start_offset; // elements
    int32_t version;
    uint32_t ndims;
    DataType dtype;
    bool manual_dep;
    bool is_contiguous;
    AddressSpace address_space;
    uint32_t shapes[MAX_TENSOR_DIMS];
    uint64_t extent_elem_cache;        // elements from the view's first to its last
    uint32_t strides[MAX_TENSOR_DIMS]; // elements
    uint8_t reserved[36];

    uint64_t numel() const {
        uint64_t product = 1;
        for (uint32_t i = 0; i < ndims; ++i) product *= shapes[i];
        return product;
    }
    uint64_t nbytes() const { return numel() * get_element_size(dtype); }
    uint64_t extent_elem() const { return extent_elem_cache; }
    bool is_device_memory() const { return address_space == AddressSpace::DEVICE; }
    template <class T> T *data_as() const { return reinterpret_cast<T *>(buffer.addr); }
    uint64_t compute_flat_offset(const uint32_t indices[], uint32_t count) const {
        uint64_t offset = start_offset;
        for (uint32_t d = 0; d < count; ++d) offset += uint64_t(indices[d]) * strides[d];
        return offset;
    }
    void copy(const ChipTensor &other) { *this = other; }
    void init_from(const ChipTensor &other) { *this = other; }

    ChipTensor view(const uint32_t sizes[], const uint32_t offsets[], bool manual = false,
                    INSIGHT_TRACE_HERE) const {
        ChipTensor made = derived(manual);
        bool empty = false;
        for (uint32_t d = 0; d < ndims; ++d) empty = empty || sizes[d] == 0;
        for (uint32_t d = 0; d < ndims; ++d) {
            if (!empty) {
                if (uint64_t(offsets[d]) + sizes[d] > shapes[d])
                    wrong("a view of " + std::to_string(sizes[d]) + " from " + std::to_string(offsets[d]) +
                              " leaves dimension " + std::to_string(d) + " of " + std::to_string(shapes[d]),
                          site);
                made.start_offset += uint64_t(offsets[d]) * strides[d];
            }
            made.shapes[d] = sizes[d];
        }
        made.settle();
        return made;
    }
    bool valid_reshape(const uint32_t sizes[], uint32_t count) const {
        uint64_t product = 1;
        for (uint32_t d = 0; d < count; ++d) product *= sizes[d];
        return product == numel();
    }
    ChipTensor reshape(const uint32_t sizes[], uint32_t count, bool manual = false,
                       INSIGHT_TRACE_HERE) const {
        if (!is_contiguous) wrong("a strided view cannot be reshaped", site);
        if (count == 0 || count > MAX_TENSOR_DIMS || !valid_reshape(sizes, count))
            wrong("a reshape must keep the number of elements, " + std::to_string(numel()), site);
        ChipTensor made = derived(manual);
        made.ndims = count;
        for (uint32_t d = 0; d < count; ++d) made.shapes[d] = sizes[d];
        made.row_major();
        made.settle();
        return made;
    }
    bool valid_transpose(uint32_t x, uint32_t y) const { return x < ndims && y < ndims; }
    ChipTensor transpose(uint32_t x, uint32_t y, bool manual = false, INSIGHT_TRACE_HERE) const {
        if (!valid_transpose(x, y)) wrong("transpose of a dimension that the tensor has not", site);
        ChipTensor made = derived(manual);
        std::swap(made.shapes[x], made.shapes[y]);
        std::swap(made.strides[x], made.strides[y]);
        made.settle();
        return made;
    }
    ChipTensor permute(const uint32_t order[], bool manual = false, INSIGHT_TRACE_HERE) const {
        ChipTensor made = derived(manual);
        for (uint32_t d = 0; d < ndims; ++d) {
            if (order[d] >= ndims) wrong("permute by a dimension that the tensor has not", site);
            made.shapes[d] = shapes[order[d]];
            made.strides[d] = strides[order[d]];
        }
        made.settle();
        return made;
    }
    ChipTensor slice(uint32_t dim, uint32_t start, uint32_t end, uint32_t step = 1, bool manual = false,
                     INSIGHT_TRACE_HERE) const {
        if (dim >= ndims || step == 0 || end <= start || end > shapes[dim])
            wrong("a slice must lie inside its dimension", site);
        ChipTensor made = derived(manual);
        made.start_offset += uint64_t(start) * strides[dim];
        made.shapes[dim] = (end - start + step - 1) / step;
        made.strides[dim] = strides[dim] * step;
        made.settle();
        return made;
    }

    // For those who make tensors: strides of a dense tensor, and what follows from shape and strides.
    void row_major() {
        uint32_t step = 1;
        for (int d = static_cast<int>(ndims) - 1; d >= 0; --d) {
            strides[d] = step;
            step *= shapes[d];
        }
    }
    void settle() {
        uint64_t span = 1, expected = 1;
        is_contiguous = true;
        bool empty = false;
        for (int d = static_cast<int>(ndims) - 1; d >= 0; --d) {
            if (strides[d] != expected) is_contiguous = false;
            if (shapes[d] == 0)
                empty = true;
            else
                span += uint64_t(shapes[d] - 1) * strides[d];
            expected *= shapes[d];
        }
        extent_elem_cache = empty ? 0 : span;
        is_contiguous = is_contiguous || empty;
    }

  private:
    ChipTensor derived(bool manual) const {
        ChipTensor made = *this;
        made.manual_dep = manual;
        return made;
    }
    [[noreturn]] static void wrong(const std::string &text, insight_trace::capture::Site site) {
        throw insight_trace::capture::OrchestrationError(text, site);
    }
};
static_assert(sizeof(ChipTensor) == 128, "kernels read 128 bytes");

// Its name until August 2026.
using Tensor = ChipTensor;

inline ChipTensor make_tensor_strided(void *address, const uint32_t shapes[], const uint32_t strides[],
                                      uint32_t ndims, DataType dtype = DataType::FLOAT32, bool manual = false,
                                      int32_t version = 0, AddressSpace space = AddressSpace::HOST,
                                      INSIGHT_TRACE_HERE) {
    if (ndims == 0 || ndims > MAX_TENSOR_DIMS)
        throw insight_trace::capture::OrchestrationError("a tensor has one to five dimensions", site);
    ChipTensor made{};
    made.buffer.addr = reinterpret_cast<uint64_t>(address);
    made.owner_task_id = PTO2TaskId::invalid();
    made.version = version;
    made.ndims = ndims;
    made.dtype = dtype;
    made.manual_dep = manual;
    made.address_space = space;
    for (uint32_t d = 0; d < ndims; ++d) made.shapes[d] = shapes[d];
    if (strides)
        for (uint32_t d = 0; d < ndims; ++d) made.strides[d] = strides[d];
    else
        made.row_major();
    made.settle();
    made.buffer.size = made.extent_elem_cache * get_element_size(dtype);
    return made;
}

inline ChipTensor make_tensor_external(void *address, const uint32_t shapes[], uint32_t ndims,
                                       DataType dtype = DataType::FLOAT32, bool manual = false,
                                       int32_t version = 0, AddressSpace space = AddressSpace::HOST,
                                       INSIGHT_TRACE_HERE) {
    return make_tensor_strided(address, shapes, nullptr, ndims, dtype, manual, version, space, site);
}

// A tensor that the runtime is to allocate.
class TensorCreateInfo {
  public:
    TensorCreateInfo() = default;
    TensorCreateInfo(const uint32_t sizes[], uint32_t count, DataType type = DataType::FLOAT32,
                     bool manual = false, INSIGHT_TRACE_HERE)
        : ndims(count), dtype(type), manual_dep(manual) {
        if (count == 0 || count > MAX_TENSOR_DIMS)
            throw insight_trace::capture::OrchestrationError("a tensor has one to five dimensions", site);
        for (uint32_t d = 0; d < count; ++d) shapes[d] = sizes[d];
    }
    template <class T = uint64_t> void set_initial_value(T value) {
        has_initial_value = true;
        initial_value = to_u64(value);
    }
    void copy(const TensorCreateInfo &other) { *this = other; }
    uint64_t buffer_size_bytes() const {
        uint64_t product = get_element_size(dtype);
        for (uint32_t d = 0; d < ndims; ++d) product *= shapes[d];
        return product;
    }

    uint64_t initial_value = 0;
    bool has_initial_value = false;
    uint32_t ndims = 0;
    DataType dtype = DataType::FLOAT32;
    bool manual_dep = false;
    uint32_t shapes[MAX_TENSOR_DIMS] = {};
};

// The tensor that a creation describes, in memory that the caller has.
inline void init_tensor_from_create_info(ChipTensor &tensor, const TensorCreateInfo &info, void *address,
                                         uint64_t bytes) {
    tensor = make_tensor_external(address, info.shapes, info.ndims, info.dtype, info.manual_dep);
    tensor.buffer.size = bytes;
}
