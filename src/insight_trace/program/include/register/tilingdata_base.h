// Tiling data of host code: classes with a setter and a getter for each field, which lie as the kernel's
// struct of the same fields does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "securec.h"

namespace optiling {

// Fields in their order, aligned as plain members are.
template <class Data> class TilingDef {
  public:
    void SaveToBuffer(void *to, size_t capacity) const {
        if (to && capacity >= GetDataSize()) memcpy(to, this, GetDataSize());
    }
    size_t GetDataSize() const { return sizeof(Data); }
};

} // namespace optiling

#define BEGIN_TILING_DATA_DEF(name)                                                                          \
    class name : public ::optiling::TilingDef<name> {                                                        \
      public:
#define TILING_DATA_FIELD_DEF(type, name)                                                                    \
    type get_##name() const { return name; }                                                                 \
    void set_##name(type value) { name = value; }                                                            \
    type name = 0
#define TILING_DATA_FIELD_DEF_ARR(type, count, name)                                                         \
    type *get_##name() { return name; }                                                                      \
    void set_##name(const type *values) { memcpy(name, values, sizeof name); }                               \
    type name[count] = {}
#define TILING_DATA_FIELD_DEF_STRUCT(type, name) type name
#define END_TILING_DATA_DEF                      }
// Which operator a class is of, for the vendor's operator packages.
#define REGISTER_TILING_DATA_CLASS(op, name)
