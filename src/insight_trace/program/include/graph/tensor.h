// Shapes and element types of the vendor's graph engine, as tiling functions take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ge {

enum DataType {
    DT_FLOAT = 0,
    DT_FLOAT16 = 1,
    DT_INT8 = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 6,
    DT_UINT16 = 7,
    DT_UINT32 = 8,
    DT_INT64 = 9,
    DT_UINT64 = 10,
    DT_DOUBLE = 11,
    DT_BOOL = 12,
    DT_BF16 = 27,
    DT_UNDEFINED = 28,
    DT_INT4 = 29,
    DT_FLOAT4_E2M1 = 40,
    DT_FLOAT4_E1M2 = 41,
};
inline int GetSizeByDataType(DataType type) {
    switch (type) {
    case DT_INT8:
    case DT_UINT8:
    case DT_BOOL:
        return 1;
    case DT_FLOAT16:
    case DT_INT16:
    case DT_UINT16:
    case DT_BF16:
        return 2;
    case DT_FLOAT:
    case DT_INT32:
    case DT_UINT32:
        return 4;
    case DT_INT64:
    case DT_UINT64:
    case DT_DOUBLE:
        return 8;
    default:
        return -1;
    }
}

class Shape {
  public:
    Shape() = default;
    explicit Shape(const std::vector<int64_t> &dims) : dims_(dims) {}
    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t which) const { return which < dims_.size() ? dims_[which] : 0; }
    bool SetDim(size_t which, int64_t value) {
        if (which >= dims_.size()) return false;
        dims_[which] = value;
        return true;
    }
    std::vector<int64_t> GetDims() const { return dims_; }
    int64_t GetShapeSize() const {
        int64_t all = 1;
        for (const int64_t dim : dims_) all *= dim;
        return dims_.empty() ? 0 : all;
    }

  private:
    std::vector<int64_t> dims_;
};

} // namespace ge
