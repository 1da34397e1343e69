// Enumerations of the tile API.
#pragma once

#include <cstdint>

namespace pto {

enum class TileType { Vec, Mat, Left, Right, Acc, Bias, Scaling, ScaleLeft, ScaleRight, Ctrl };
enum class BLayout { RowMajor = 0, ColMajor = 1 };
enum class SLayout { NoneBox = 0, RowMajor = 1, ColMajor = 2 };
enum class PrintFormat : uint8_t { Width8_Precision4, Width8_Precision2, Width10_Precision6 };
enum class MaskPattern : uint8_t { P0101 = 1, P1010, P0001, P0010, P0100, P1000, P1111 };
enum class Layout {
    ND,
    DN,
    NZ,
    SCALE,
    MX_A_ND,
    MX_A_DN,
    MX_A_ZZ,
    MX_B_ND,
    MX_B_DN,
    MX_B_NN,
    HIF4_A_ZZ,
    HIF4_B_NN,
    NC1HWC0,
    GNC1HWC0,
    NCHW,
    GNCHW,
    NHWC,
    NDC1HWC0,
    NCDHW,
    FRACTAL_Z,
    FRACTAL_Z_S16S8,
    FRACTAL_Z_3D,
    MAX,
};
enum class CmpMode : uint8_t { EQ, NE, LT, LE, GT, GE };
enum class QuantType { MXFP8, MXFP4_E2M1, INT8_SYM, INT8_ASYM };
enum class QuantScaleAlg { OCP, NV };
enum class MxQuantAlg { OcpMxFp8E4M3, NvMxFp8E4M3, OcpMxFp4E2M1, NvMxFp4E2M1, Hif4 };
enum class HistByte : uint8_t { BYTE_0, BYTE_1, BYTE_2, BYTE_3 };
enum class VecStoreMode { ND, NZ };
enum class STPhase : uint8_t { Unspecified = 0, Partial = 2, Final = 3 };
enum class AccPhase : uint8_t { Unspecified = 0, Unknown = 0, Partial = 2, Final = 3 };
enum class RoundMode : uint8_t {
    CAST_NONE,
    CAST_RINT,
    CAST_ROUND,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_TRUNC,
    CAST_ODD
};
enum class SaturationMode : uint8_t { ON = 0, OFF = 1 };
enum class TCopyMode : uint8_t { SHALLOW_COPY, DEEP_COPY };
enum class SyncAllMode : uint8_t { Hard, Soft };
enum class SyncCoreType : uint8_t { AIVOnly, AICOnly, Mix };
// Cross-core flags that the synchronisation of all cores uses.
constexpr uint16_t SYNC_AIC_FLAG = 11, SYNC_AIV_FLAG = 12, SYNC_AIC_AIV_FLAG = 13, SYNC_AIV_ONLY_ALL = 14;
constexpr uint16_t SYNC_FLAG_ID_MAX = 16;
enum class AccToVecMode : uint8_t { SingleModeVec0, SingleModeVec1, DualModeSplitM, DualModeSplitN };
enum class ReluPreMode : uint8_t { NoRelu, NormalRelu };
enum class AtomicType : uint8_t { AtomicNone, AtomicAdd };
enum class PadValue : uint64_t { Null, Zero, Max, Min, CustomBase = 0x100000000ull };
enum class TFillPadMode : uint8_t { Normal, InPlace, Expand };
enum class CompactMode { Null, Normal, RowPlusOne, RowAlignedPadding };
enum class SetFmatrixMode { FMATRIX_A_AUTO, FMATRIX_B_AUTO, FMATRIX_A_MANUAL, FMATRIX_B_MANUAL };
enum class ScatterAtomicOp : uint8_t { None, Add, Max, Min };
enum class ScatterOOB : uint8_t { Undefined, Skip, Clamp, Wrap };
enum class ScatterConflict : uint8_t { Last, Default };
enum class GatherOOB : uint8_t { Undefined, Clamp, Wrap, Zero };
enum class TInsertMode : uint8_t { SPLIT2 = 2, SPLIT4 = 3 };
enum class Coalesce : uint8_t { Row, Elem };
enum class DivAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class ExpAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class LogAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class SqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RsqrtAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class RecipAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };
enum class PowAlgorithm : uint8_t { DEFAULT, HIGH_PRECISION };

enum GlobalTensorDim : int { DIM_0, DIM_1, DIM_2, DIM_3, DIM_4, TOTAL_DIM };

constexpr int DYNAMIC = -1;

} // namespace pto
