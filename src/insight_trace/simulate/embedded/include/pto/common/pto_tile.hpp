// Tile: a matrix in one of a core's memories, placed by TASSIGN.
#pragma once

#include "insight_trace/type_codes.hpp"
#include "pto/common/global_tensor.hpp"

namespace pto {

namespace bundled {
using insight_trace::bits_value;
using insight_trace::type_of;
using insight_trace::value_bits;
} // namespace bundled

template <TileType Loc_, class Element, int Rows_, int Cols_, BLayout Outer = BLayout::RowMajor,
          int ValidRow_ = Rows_, int ValidCol_ = Cols_, SLayout Inner = SLayout::NoneBox,
          int Fractal = TileConfig::fractalABSize, auto Pad = PadValue::Null,
          CompactMode Compact_ = CompactMode::Null>
struct Tile {
    using DType = Element;
    using TileDType = Element *;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_;
    static constexpr int Cols = Cols_;
    static constexpr int ValidRow = ValidRow_;
    static constexpr int ValidCol = ValidCol_;
    static constexpr int Numel = Rows * Cols;
    static constexpr BLayout BFractal = Outer;
    static constexpr SLayout SFractal = Inner;
    static constexpr int SFractalSize = Fractal;
    static constexpr auto PadVal = Pad;
    static constexpr CompactMode Compact = Compact_;
    static constexpr bool isRowMajor = Outer == BLayout::RowMajor;
    static constexpr bool isBoxedLayout = Inner != SLayout::NoneBox;
    static constexpr bool isInnerRowMajor = Inner == SLayout::RowMajor;
    static constexpr bool isInnerColMajor = Inner == SLayout::ColMajor;
    static constexpr int RowStride = isRowMajor ? Cols : 1;
    static constexpr int ColStride = isRowMajor ? 1 : Rows;
    static constexpr int InnerRows = Fractal == TileConfig::fractalCSize    ? 16
                                     : Fractal == TileConfig::fractalMxSize ? (isInnerRowMajor ? 16 : 2)
                                     : !isBoxedLayout                       ? 1
                                     : isInnerRowMajor                      ? 16
                                                                            : 32 / int(sizeof(Element));
    static constexpr int InnerCols = Fractal == TileConfig::fractalCSize    ? 16
                                     : Fractal == TileConfig::fractalMxSize ? (isInnerRowMajor ? 2 : 16)
                                     : !isBoxedLayout                       ? 1
                                     : isInnerRowMajor                      ? 32 / int(sizeof(Element))
                                                                            : 16;
    static constexpr int InnerNumel = InnerRows * InnerCols;
    static_assert(Rows > 0 && Cols > 0 && ValidRow <= Rows && ValidCol <= Cols,
                  "valid size exceeds the tile");

    Tile() = default;
    Tile(const Tile &) = default;
    // A tile that has no place yet gives none: kernels set another valid part so, with a fresh tile.
    Tile &operator=(const Tile &other) {
        if (other.placed_) assign(other.address_);
        RowMaskInternal = other.RowMaskInternal;
        ColMaskInternal = other.ColMaskInternal;
        k_aligned_ = other.k_aligned_;
        return *this;
    }
    // One run-time extent where one is dynamic; both, in order, where both are.
    explicit Tile(size_t extent) {
        static_assert((ValidRow == DYNAMIC) != (ValidCol == DYNAMIC),
                      "one extent needs exactly one run-time extent");
        if constexpr (ValidRow == DYNAMIC)
            RowMaskInternal = static_cast<int>(extent);
        else
            ColMaskInternal = static_cast<int>(extent);
    }
    Tile(size_t rows, size_t cols) {
        if constexpr (ValidRow == DYNAMIC) RowMaskInternal = static_cast<int>(rows);
        if constexpr (ValidCol == DYNAMIC) ColMaskInternal = static_cast<int>(cols);
    }

    // Public under the library's names: kernels set them.
    int RowMaskInternal = ValidRow == DYNAMIC ? Rows : ValidRow;
    int ColMaskInternal = ValidCol == DYNAMIC ? Cols : ValidCol;
    int GetValidRow() const { return ValidRow == DYNAMIC ? RowMaskInternal : ValidRow; }
    int GetValidCol() const { return ValidCol == DYNAMIC ? ColMaskInternal : ValidCol; }
    void SetValidRow(int rows) { RowMaskInternal = rows; }
    void SetValidCol(int cols) { ColMaskInternal = cols; }
    void SetValidShape(int rows, int cols) {
        RowMaskInternal = rows;
        ColMaskInternal = cols;
    }
    bool GetKAligned() const { return k_aligned_; }
    void SetKAligned(bool aligned) { k_aligned_ = aligned; }
    // Products of floats from shortened operands, until it is reset: two bits of the CTRL
    // register.
    void SetMadTF32Mode(RoundMode mode = RoundMode::CAST_ROUND, INSIGHT_TRACE_AT) {
        const uint64_t control = sbitset1(get_ctrl(at), 46);
        set_ctrl(mode == RoundMode::CAST_ROUND ? sbitset1(control, 47) : sbitset0(control, 47), at);
    }
    void ResetMadMode(INSIGHT_TRACE_AT) { set_ctrl(sbitset0(get_ctrl(at), 46), at); }
    static constexpr size_t GetSizeInBytes() { return size_t(Numel) * sizeof(Element); }

    // Host address of the tile's first byte: kernels compare, cast and re-assign it.
    TileDType &data(INSIGHT_TRACE_AT) const {
        return data_ = static_cast<TileDType>(
                   insight_trace_local(static_cast<insight_trace::Space>(Loc), address_, 1, at));
    }
    Element GetValue(uint32_t index, INSIGHT_TRACE_AT) const {
        auto tile = ref();
        return bundled::bits_value<Element>(insight_trace_get_value(&tile, index, at));
    }
    void SetValue(uint32_t index, Element value, INSIGHT_TRACE_AT) {
        auto tile = ref();
        insight_trace_set_value(&tile, index, bundled::value_bits(value), at);
    }

    uint64_t address() const { return address_; }
    void assign(uint64_t address) {
        address_ = address;
        placed_ = true;
    }

    insight_trace::TileRef ref() const {
        insight_trace::TileRef r{};
        r.address = static_cast<uint32_t>(address_);
        r.rows = Rows;
        r.cols = Cols;
        r.valid_rows = GetValidRow();
        r.valid_cols = GetValidCol();
        r.space = static_cast<insight_trace::Space>(Loc);
        r.type = bundled::type_of<Element>();
        r.row_major = isRowMajor;
        r.inner = static_cast<uint8_t>(Inner);
        r.compact = static_cast<uint8_t>(Compact);
        r.dynamic = static_cast<uint8_t>((ValidRow == DYNAMIC ? 1 : 0) | (ValidCol == DYNAMIC ? 2 : 0));
        r.fractal = Fractal;
        r.pad = static_cast<uint64_t>(Pad);
        return r;
    }

  private:
    uint64_t address_ = 0;
    mutable TileDType data_ = nullptr; // kernels bind references to it
    bool k_aligned_ = false;
    bool placed_ = false; // has an address of its own
};

#if defined(PTO_NPU_ARCH_A5)
constexpr BLayout kLeftOuter = BLayout::ColMajor;
#else
constexpr BLayout kLeftOuter = BLayout::RowMajor;
#endif

template <class T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, kLeftOuter, VR, VC, SLayout::RowMajor, 512>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileLeftCompact = Tile<TileType::Left, T, R, C, kLeftOuter, VR, VC, SLayout::RowMajor, 512,
                             PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileRight = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, 512>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileRightCompact = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor, 512,
                              PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileAcc = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 1024>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileAccCompact = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 1024,
                            PadValue::Null, CompactMode::Normal>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileLeftScale = Tile<TileType::ScaleLeft, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor, 32>;
template <class T, int R, int C, int VR = R, int VC = C>
using TileRightScale = Tile<TileType::ScaleRight, T, R, C, BLayout::ColMajor, VR, VC, SLayout::ColMajor, 32>;

template <class T> struct is_tile : std::false_type {};
template <TileType L, class E, int R, int C, BLayout B, int VR, int VC, SLayout S, int F, auto P,
          CompactMode K>
struct is_tile<Tile<L, E, R, C, B, VR, VC, S, F, P, K>> : std::true_type {};

} // namespace pto
