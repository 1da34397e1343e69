// What a chip has, as host code asks for it.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>

#include "platform/soc_spec.h"

#define PLATFORM_ASCENDC_H // one of the same names is in asc-devkit

namespace platform_ascendc {

enum class CoreMemType {
    L0_A = 0,
    L0_B = 1,
    L0_C = 2,
    L1 = 3,
    L2 = 4,
    UB = 5,
    HBM = 6,
    FB = 7,
    BT = 8,
    RESERVED
};
enum class SocVersion {
    ASCEND910 = 0,
    ASCEND910B,
    ASCEND310P,
    ASCEND310B,
    ASCEND950,
    ASCEND910_55,
    ASCEND910_95 = ASCEND950,
    ASCEND910_93 = 13,
    ASCEND350 = 24,
    RESERVED_VERSION = 99999
};
enum class ReservedSize { RESERVED_SIZE_8K, RESERVED_SIZE_16K, RESERVED_SIZE_32K };

class PlatformAscendC {
  public:
    uint32_t GetCoreNum() const { return GetCoreNumAiv(); }
    uint32_t GetCoreNumAic() const;
    uint32_t GetCoreNumAiv() const;
    uint32_t GetCoreNumVector() const { return 0; }
    uint32_t CalcTschBlockDim(uint32_t slices, uint32_t aic, uint32_t aiv) const {
        if (!aic || !aiv || aic > aiv) return slices;
        const uint32_t ratio = aiv / aic;
        return (slices + ratio - 1) / ratio;
    }
    uint32_t GetLibApiWorkSpaceSize() const { return 16 * 1024 * 1024; }
    void GetCoreMemSize(const CoreMemType &memory, uint64_t &size) const;
    void GetCoreMemBw(const CoreMemType &, uint64_t &bandwidth) const { bandwidth = 0; }
    SocVersion GetSocVersion() const;
    NpuArch GetCurNpuArch() const;
    // Bytes of a vector register; the 910B has none.
    uint32_t GetVecRegLen() const { return GetCurNpuArch() == NpuArch::DAV_3510 ? 256 : 0; }
    uint32_t CalcTschNumBlocks(uint32_t slices, uint32_t aic, uint32_t aiv) const {
        return CalcTschBlockDim(slices, aic, aiv);
    }
};

class PlatformAscendCManager {
  public:
    static PlatformAscendC *GetInstance();
    static PlatformAscendC *GetInstance(const char *soc);
};

} // namespace platform_ascendc
