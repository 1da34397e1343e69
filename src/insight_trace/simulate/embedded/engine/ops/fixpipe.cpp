#include "fixpipe.hpp"

#include <algorithm>

namespace insight_trace::engine {

namespace {

// Nearest, ties to even, held within the type.
template <class T> T saturate(float value) {
    if (std::isnan(value)) return T(0);
    float low = static_cast<float>(std::numeric_limits<T>::lowest()),
          high = static_cast<float>(std::numeric_limits<T>::max());
    float rounded = std::nearbyint(value);
    if (rounded <= low) return std::numeric_limits<T>::lowest();
    if (rounded >= high) return std::numeric_limits<T>::max();
    return static_cast<T>(rounded);
}

template <class To, class From> To convert(From value, bool relu, const float *scale) {
    if (relu && value < From(0)) value = From(0);
    if (!scale) {
        if constexpr (std::is_same_v<To, From>)
            return value;
        else if constexpr (is_real<To>)
            return To(static_cast<float>(value));
        else
            return saturate<To>(static_cast<float>(value));
    }
    float scaled = static_cast<float>(value) * *scale;
    if constexpr (is_real<To>)
        return To(scaled);
    else
        return saturate<To>(scaled);
}

// The scale is a float in the low half of a 64-bit word, with offset and sign above it.
bool scale_of(const Operand *operand, float &scale) {
    if (!operand) return false;
    scale = bits_float(static_cast<uint32_t>(operand->scalar.bits));
    return true;
}

template <class Body> void with_accumulator(Core &core, const TileRef &tile, Body body) {
    if (tile.type == Type::F32)
        body(View<float>(core, tile));
    else if (tile.type == Type::I32)
        body(View<int32_t>(core, tile));
    else
        core.kernel_error("an Acc tile holds float or int32");
}

} // namespace

void store_accumulator(Core &core, const GlobalRef &g, const TileRef &tile, bool atomic, bool relu,
                       const Operand *scale_operand) {
    int size = type_size(g.type);
    float scale = 1;
    bool scaled = scale_of(scale_operand, scale);
    int64_t rows = tile.valid_rows, cols = tile.valid_cols;
    bool nz = g.layout == 2;
    if (g.layout > 2) core.unsupported("TSTORE of an Acc tile to global layout %d", g.layout);
    bool adds = atomic || core.atomic_type != 0;
    if (atomic) {
        core.set_register(PipeId::S, static_cast<uint64_t>(g.type));
        core.set_register(PipeId::S, 1);
    }
    auto address = [&](int64_t r, int64_t c) {
        int64_t offset = 0;
        if (nz) {
            int64_t c0 = g.shape[4], box = g.shape[3], column = c / c0;
            offset = column / g.shape[1] * g.stride[0] + column % g.shape[1] * g.stride[1] +
                     r / box * g.stride[2] + r % box * g.stride[3] + c % c0;
        } else {
            offset = r * g.stride[3] + c * g.stride[4];
        }
        return g.address + uint64_t(offset * size);
    };
    if (core.computes)
        with_accumulator(core, tile, [&](auto view) {
            with_type(g.type, [&](auto tag) {
                using T = decltype(tag);
                bool contiguous = !nz && g.stride[4] == 1;
                for (int64_t r = 0; r < rows; ++r) {
                    T *line =
                        contiguous
                            ? reinterpret_cast<T *>(core.global(address(r, 0), uint64_t(cols) * sizeof(T)))
                            : nullptr;
                    for (int64_t c = 0; c < cols; ++c) {
                        T *to = contiguous ? line + c
                                           : reinterpret_cast<T *>(core.global(address(r, c), sizeof(T)));
                        T value = convert<T>(view.at(r, c), relu, scaled ? &scale : nullptr);
                        *to = adds ? T(wrap_add(Wide<T>(*to), Wide<T>(value))) : value;
                    }
                }
            });
        });
    if (!nz) core.set_register(PipeId::FIX, 1); // how many matrices, and how far apart
    core.fixpipe(Instr::FIX_L0C_TO_OUT, g.type, g.address, 0, tile.address, rows, cols, rows * cols * size,
                 !nz);
    if (atomic) core.set_register(PipeId::S, 0);
}

void move_accumulator(Core &core, const TileRef &dst, Corner to, const TileRef &src, Corner from,
                      int64_t rows, int64_t cols, bool relu, const Operand *scale_operand) {
    float scale = 1;
    bool scaled = scale_of(scale_operand, scale);
    rows = std::min({rows, src.rows - from.row, dst.rows - to.row});
    cols = std::min({cols, src.cols - from.col, dst.cols - to.col});
    if (rows <= 0 || cols <= 0) return;
    if (core.computes)
        with_accumulator(core, src, [&](auto view) {
            with_type(dst.type, [&](auto tag) {
                using T = decltype(tag);
                View<T> out(core, dst);
                for (int64_t r = 0; r < rows; ++r)
                    for (int64_t c = 0; c < cols; ++c)
                        out.at(to.row + r, to.col + c) =
                            convert<T>(view.at(from.row + r, from.col + c), relu, scaled ? &scale : nullptr);
            });
        });
    Instr instr = dst.space == Space::UB ? Instr::FIX_L0C_TO_UB : Instr::FIX_L0C_TO_L1;
    core.fixpipe(instr, dst.type, 0, dst.address, src.address, rows, cols, rows * cols * type_size(dst.type));
}

} // namespace insight_trace::engine
