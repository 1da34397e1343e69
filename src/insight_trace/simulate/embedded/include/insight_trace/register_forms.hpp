// The forms that register instructions have (950), numbered as the kernel's calls and the engine agree on.
#pragma once

#include <cstdint>

namespace insight_trace {

// What a load puts where. Names as the device compiler's, numbers as AscendC counts them.
enum class DistLoad : uint8_t {
    NORM,
    BRC_B8,
    BRC_B16,
    BRC_B32,
    US_B8 = 6,
    US_B16,
    DS_B8,
    DS_B16,
    BDINTLV,
    DINTLV_B8,
    DINTLV_B16,
    UNPK_B8,
    UNPK_B16,
    BLK,
    E2B_B16,
    E2B_B32,
    UNPK_B32,
    DINTLV_B32,
    UNPK4_B8,
    SPLT4CHN_B8,
    SPLT2CHN_B8,
    SPLT2CHN_B16,
    // of predicates
    US,
    DS,
    PK,
};
enum class Part : uint8_t { EVEN, ODD, P0 = 0, P1, P2, P3 };
enum class Rounding : uint8_t { None, R, A, F, C, Z, O, H };
enum class Saturation : uint8_t { Disable, Enable, Default };
enum class Merging : uint8_t { Unknown, Merging, Zeroing };
enum class Stored : uint8_t { No, Yes };
enum class Half : uint8_t { Lower, Higher };
enum class Position : uint8_t { Lowest, Highest };
enum class Direction : uint8_t { Rising, Falling };
enum class Post : uint8_t { No, Update };
enum class Bins : uint8_t { Low, High };
enum class Barrier : uint8_t { VST_VLD, VST_VST, VLD_VST, VV_ALL, VST_LD, VST_ST, VLD_ST, VS_ALL, SV_ALL };
enum class Pattern : uint8_t {
    ALL,
    VL1,
    VL2,
    VL3,
    VL4,
    VL8,
    VL16,
    VL32,
    VL64,
    VL128,
    M3,
    M4,
    H,
    Q,
    ALLF = 15,
};

} // namespace insight_trace

// As pto-isa counts them: it makes them of its own numbers.
enum class DistVST : uint8_t {
    DIST_NORM_B8,
    DIST_NORM_B16,
    DIST_NORM_B32,
    DIST_ONEPT_B8,
    DIST_ONEPT_B16,
    DIST_ONEPT_B32,
    DIST_PK_B16,
    DIST_PK_B32,
    DIST_INTLV_B8,
    DIST_INTLV_B16,
    DIST_PK_B64,
    DIST_INTLV_B32,
    DIST_PK4_B32,
    DIST_MRG4CHN_B8,
    DIST_MRG2CHN_B8,
    DIST_MRG2CHN_B16,
};
// Of predicates: US and DS of loads, PK of stores.
enum class Dist : uint8_t { DIST_NORM, DIST_US, DIST_DS, DIST_PK = 1 };
