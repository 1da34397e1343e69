#include "fixpipe.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cluster.hpp"
#include "convert_narrow.hpp"
#include "rounding.hpp"

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

// A scale is a word: a float of ten mantissa bits in bits 13..31, an offset of nine bits from 37 on, and in
// bit 46 whether eight bits are signed.
class Scale {
  public:
    Scale(Core &core, const char *op, const Operand *operand) {
        if (!operand) return;
        if (operand->kind == Operand::Tile) {
            const TileRef &tile = operand->tile;
            if (tile.space != Space::Scaling || type_size(tile.type) != 8)
                core.kernel_error("%s: the scales must be a Scaling tile of 64-bit words", op);
            words_ = core.local_as<uint64_t>(Space::Scaling, tile.address, uint64_t(tile.cols));
            count_ = tile.cols;
        } else {
            one_ = operand->scalar.bits;
            words_ = &one_;
            count_ = 1;
            same_ = true;
        }
    }
    // One word for all columns, or one for each.
    Scale(const uint64_t *words, int64_t count) : words_(words), count_(count), same_(count == 1) {}
    Scale(const Scale &) = delete;
    bool given() const { return words_ != nullptr; }
    // Columns past the last word are not valid ones.
    uint64_t word(int64_t col) const { return words_[same_ ? 0 : std::min(col, count_ - 1)]; }

  private:
    const uint64_t *words_ = nullptr;
    int64_t count_ = 0;
    uint64_t one_ = 0;
    bool same_ = false;
};

float factor(uint64_t word) { return bits_float(static_cast<uint32_t>(word) & 0xffffe000u); }

uint8_t to_byte(float scaled, uint64_t word) {
    const int offset = static_cast<int>(word >> 37 & 0x1ff);
    const float nine_bits = std::isnan(scaled) ? 0.0f : std::nearbyint(std::clamp(scaled, -256.0f, 255.0f));
    const int value = static_cast<int>(nine_bits) + (offset >= 256 ? offset - 512 : offset);
    const bool is_signed = word >> 46 & 1;
    return static_cast<uint8_t>(is_signed ? std::clamp(value, -128, 127) : std::clamp(value, 0, 255));
}

template <class To> To held(float value) { // within the finite numbers of a 16-bit float
    const float largest = std::is_same_v<To, half> ? 65504.0f : bits_float(0x7f7f0000u);
    return To(std::clamp(value, -largest, largest));
}

// The bits of `value` in the type of the destination.
template <class To, class From>
To convert(From value, Type type, bool relu, const Scale &scale, int64_t col) {
    if (relu && value < From(0)) value = From(0);
    const float plain = static_cast<float>(value);
    if (!scale.given()) {
        if constexpr (std::is_same_v<To, From>)
            return value;
        else if constexpr (is_real<To>)
            return To(plain);
        else
            return saturate<To>(plain);
    }
    const uint64_t word = scale.word(col);
    // 16-bit integers are shifted: by one more than bits 32..35 say
    if constexpr (std::is_same_v<To, int16_t> && std::is_same_v<From, int32_t>)
        return static_cast<int16_t>(std::clamp(value >> ((word >> 32 & 15) + 1), -32768, 32767));
    const float scaled = plain * factor(word);
    if constexpr (std::is_same_v<To, float>)
        return scaled;
    else if constexpr (is_real<To>)
        return std::isnan(scaled) ? To(scaled) : held<To>(scaled);
    else if constexpr (sizeof(To) == 1) {
        if (type == Type::HiF8) return To(hif8_code(double(scaled)));
        if (type == Type::F8E4M3) return To(encode(double(scaled), kF8E4M3, Round::Rint, true));
        return To(to_byte(scaled, word));
    } else
        return saturate<To>(scaled);
}

template <class Body> void with_accumulator(Core &core, const TileRef &tile, Body body) {
    if (tile.type == Type::F32)
        body(View<float>(core, tile));
    else if (tile.type == Type::I32)
        body(View<int32_t>(core, tile));
    else
        core.kernel_error("an Acc tile holds float or int32");
}

// Elements of a row of an accumulator from a column on, in the type of their destination. One place for all
// ways out: what goes where is a matter of bytes.
void convert_row(Core &core, const TileRef &tile, Corner from, int64_t count, Type type, const WayOut &way,
                 const Scale &scale, void *to) {
    with_accumulator(core, tile, [&](auto view) {
        with_type(type, [&](auto tag) {
            auto *out = static_cast<decltype(tag) *>(to);
            for (int64_t c = 0; c < count; ++c)
                out[c] = convert<decltype(tag)>(view.at(from.row, from.col + c), type, way.relu, scale,
                                                from.col + c);
        });
    });
}

void add_to(Type type, void *to, const void *from, int64_t count) {
    with_type(unsigned_of(type), [&](auto tag) {
        using T = decltype(tag);
        T *sum = static_cast<T *>(to);
        const T *value = static_cast<const T *>(from);
        for (int64_t i = 0; i < count; ++i) sum[i] = T(wrap_add(Wide<T>(sum[i]), Wide<T>(value[i])));
    });
}

// Where the rows of an accumulator go in a tensor.
Area rows_in_gm(const GlobalRef &g, int64_t rows, int64_t cols) {
    const int64_t size = type_size(g.type);
    if (g.stride[4] == 1) return lines_at(g.address, rows, g.stride[3] * size, cols * size);
    Area area = lines_at(g.address, rows, g.stride[3] * size, size);
    area.walk[0].count[1] = static_cast<uint32_t>(cols);
    area.walk[0].step[1] = g.stride[4] * size;
    return area;
}

// The same in a tensor of boxes: the columns of the last one may be fewer.
Area boxes_in_gm(const GlobalRef &g, int64_t rows, int64_t cols) {
    const int64_t size = type_size(g.type), c0 = g.shape[4], box = g.shape[3];
    const bool one_outer = g.shape[1] * c0 >= cols;
    Area area(g.address);
    for (int64_t first = 0; first < cols && area.parts < Area::kMost;) {
        const bool whole = cols - first >= c0;
        const int64_t column = first / c0, boxes = whole ? (one_outer ? (cols - first) / c0 : 1) : 1;
        Traversal &walk = area.add();
        walk.offset = (column / g.shape[1] * g.stride[0] + column % g.shape[1] * g.stride[1]) * size;
        walk.count[0] = static_cast<uint32_t>(boxes);
        walk.step[0] = g.stride[1] * size;
        walk.count[1] = static_cast<uint32_t>((rows + box - 1) / box);
        walk.step[1] = g.stride[2] * size;
        walk.count[2] = static_cast<uint32_t>(box);
        walk.step[2] = g.stride[3] * size;
        walk.run = static_cast<uint32_t>((whole ? c0 : cols - first) * size);
        walk.lead = static_cast<uint32_t>(rows * walk.run);
        first += boxes * c0;
    }
    return area;
}

} // namespace

void convert_values(Type from, const void *values, int64_t count, Type to, bool relu, const uint64_t *words,
                    int64_t word_count, void *out) {
    const Scale scale(words, word_count);
    with_type(to, [&](auto tag) {
        using To = decltype(tag);
        auto all = [&](const auto *in) {
            for (int64_t i = 0; i < count; ++i)
                static_cast<To *>(out)[i] = convert<To>(in[i], to, relu, scale, i);
        };
        if (from == Type::I32)
            all(static_cast<const int32_t *>(values));
        else
            all(static_cast<const float *>(values));
    });
}

WayOut::WayOut(const Operands &operands, uint32_t first) {
    int options = 0;
    for (uint32_t i = first; i < operands.count; ++i) {
        if (operands[i].kind != Operand::Option)
            scale = &operands[i];
        else if (options++ == 0)
            relu = operands[i].option != 0;
        else
            mode = static_cast<ToVector>(operands[i].option);
    }
}

void store_accumulator(Core &core, const GlobalRef &g, const TileRef &tile, bool atomic,
                       const WayOut &way_out) {
    int size = type_size(g.type);
    const Scale scale(core, "TSTORE", way_out.scale);
    int64_t rows = tile.valid_rows, cols = tile.valid_cols;
    // to NZ, NC1HWC0 and NDC1HWC0 it goes in columns of boxes
    constexpr uint8_t kNC1HWC0 = 12, kNDC1HWC0 = 17;
    const bool nz = g.layout == 2 || g.layout == kNC1HWC0 || g.layout == kNDC1HWC0;
    // images: rows are places and columns are channels, which lie side by side or plane by plane
    constexpr uint8_t kNCHW = 14, kNHWC = 16, kNCDHW = 18;
    const bool planes = g.layout == kNCHW || g.layout == kNCDHW;
    const bool image = core.register_based() && (planes || g.layout == kNHWC);
    if (g.layout > 2 && !nz && !image)
        core.unsupported("TSTORE of an Acc tile to global layout %d", g.layout);
    if (g.layout == kNHWC && g.shape[0] != 1)
        core.unsupported("TSTORE of an Acc tile to several NHWC images");
    const int64_t c0 = g.layout != kNDC1HWC0 ? g.shape[4] : g.type == Type::I32 ? 16 : 32 / size;
    if (g.layout == kNC1HWC0 ? g.stride[3] <= 0 : g.layout == kNDC1HWC0 && g.stride[4] <= 0)
        core.kernel_error("TSTORE to a tensor whose pixels lie %d elements apart", 0);
    const int64_t column_step = g.layout == kNC1HWC0    ? g.shape[0] * g.stride[1] / g.stride[3] * c0
                                : g.layout == kNDC1HWC0 ? g.shape[0] * g.stride[2] / g.stride[4] * c0
                                                        : g.shape[2] * g.shape[3] * c0;
    const bool by_column = nz && (g.layout != 2 || !core.register_based());
    const bool adds = core.atomic_store = atomic || core.atomic_type != 0;
    if (atomic) {
        core.set_register(PipeId::S, static_cast<uint64_t>(g.type));
        core.set_register(PipeId::S, 1);
    }
    auto address = [&](int64_t r, int64_t c) {
        int64_t offset = 0;
        if (by_column) {
            offset = c / c0 * column_step + r * c0 + c % c0;
        } else if (nz) {
            int64_t box = g.shape[3], column = c / c0;
            offset = column / g.shape[1] * g.stride[0] + column % g.shape[1] * g.stride[1] +
                     r / box * g.stride[2] + r % box * g.stride[3] + c % c0;
        } else if (planes) {
            offset = r + c * g.stride[g.layout == kNCHW ? 2 : 1];
        } else {
            offset = r * g.stride[3] + c * g.stride[4];
        }
        return g.address + uint64_t(offset * size);
    };
    if (core.computes) {
        std::vector<uint64_t> line(static_cast<size_t>(std::max<int64_t>(cols, 0))); // room for any type
        const auto *bytes = reinterpret_cast<const uint8_t *>(line.data());
        // as far as a row lies side by side in global memory
        const int64_t run = nz ? c0 : !planes && g.stride[4] == 1 ? cols : 1;
        for (int64_t r = 0; r < rows; ++r) {
            convert_row(core, tile, {r, 0}, cols, g.type, way_out, scale, line.data());
            for (int64_t c = 0; c < cols;) {
                const int64_t end = std::min(cols, c + run);
                const uint64_t length = uint64_t((end - c) * size);
                uint8_t *to = core.global(address(r, c), length);
                if (adds)
                    add_to(g.type, to, bytes + c * size, end - c);
                else
                    std::memcpy(to, bytes + c * size, length);
                c = end;
            }
        }
    }
    if (!nz) core.set_register(PipeId::FIX, 1); // how many matrices, and how far apart
    const Area there = by_column
                           ? lines_at(g.address, (cols + c0 - 1) / c0, column_step * size, rows * c0 * size)
                       : nz ? boxes_in_gm(g, rows, cols)
                            : rows_in_gm(g, rows, cols);
    core.fixpipe(Instr::FIX_L0C_TO_OUT, g.type, there, 0, valid_of(tile), rows, cols, rows * cols * size, !nz,
                 nz ? 0 : g.stride[3] * size);
    core.atomic_store = false;
    if (atomic) core.set_register(PipeId::S, 0);
}

namespace {

// What the instruction moves: whole blocks where the destination has boxes.
int64_t whole_blocks(const TileRef &dst, ToVector mode, int64_t cols) {
    const int64_t unit = mode == ToVector::SplitRows   ? 16
                         : mode == ToVector::SplitCols ? 32
                                                       : inner_cols(dst);
    return (cols + unit - 1) / unit * unit;
}

} // namespace

void move_accumulator(Core &core, const char *op, const TileRef &dst, Corner to, const TileRef &src,
                      Corner from, int64_t rows, int64_t cols, const WayOut &way_out) {
    const bool to_vector = dst.space == Space::UB;
    if (!to_vector && dst.space != Space::L1)
        core.kernel_error("%s out of an Acc tile goes to Vec or Mat", op);
    if (to_vector && !core.register_based())
        core.unsupported("%s from an Acc to a Vec tile: this chip has no such path", op);
    if (rows <= 0 || cols <= 0) return;
    const Scale scale(core, op, way_out.scale);
    const bool by_rows = way_out.mode == ToVector::SplitRows, by_cols = way_out.mode == ToVector::SplitCols;
    if ((by_rows || by_cols) && (scale.given() || dst.type != src.type || (dst.inner == 0 && !dst.row_major)))
        core.kernel_error("%s to both vector cores neither converts nor turns", op);
    if (dst.inner != 0) cols = whole_blocks(dst, way_out.mode, cols);
    const int64_t part_rows = by_rows ? rows / 2 : rows, part_cols = by_cols ? cols / 2 : cols;
    const int64_t put_rows = std::min({part_rows, src.rows - from.row, dst.rows - to.row});
    const int64_t put_cols = std::min({part_cols, src.cols - from.col, dst.cols - to.col});
    const int parts = by_rows || by_cols ? 2 : 1;
    for (int part = 0; core.computes && part < parts; ++part) {
        const int64_t lane = parts == 2 ? part : way_out.mode == ToVector::Second ? 1 : 0;
        Core *owner = owner_of(core, dst.space, lane);
        if (!owner) continue; // nothing runs there
        const int64_t row = from.row + (by_rows ? part * part_rows : 0);
        const int64_t col = from.col + (by_cols ? part * part_cols : 0);
        const int64_t count = std::min(put_cols, src.cols - col);
        std::vector<uint64_t> line(static_cast<size_t>(std::max<int64_t>(count, 0)));
        with_bits(dst.type, [&](auto tag) {
            using Bits = decltype(tag);
            View<Bits> out(*owner, dst);
            const Bits *values = reinterpret_cast<const Bits *>(line.data());
            for (int64_t r = 0; r < put_rows && row + r < src.rows; ++r) {
                convert_row(core, src, {row + r, col}, count, dst.type, way_out, scale, line.data());
                for (int64_t c = 0; c < count; ++c) out.at(to.row + r, to.col + c) = values[c];
            }
        });
    }
    Instr instr = to_vector ? Instr::FIX_L0C_TO_UB : Instr::FIX_L0C_TO_L1;
    const Area there = part_of(dst, to.row, to.col, put_rows, put_cols);
    const uint8_t first = to_vector ? vector_core(way_out.mode == ToVector::Second ? 1 : 0) : 0;
    if (parts == 2) core.also(kWrites, dst.space, dst.type, in_core(vector_core(1), there));
    core.fixpipe(instr, dst.type, 0, in_core(first, there),
                 part_of(src, from.row, from.col, std::min<int64_t>(rows, src.rows - from.row),
                         std::min<int64_t>(cols, src.cols - from.col)),
                 rows, cols, rows * cols * type_size(dst.type));
}

} // namespace insight_trace::engine
