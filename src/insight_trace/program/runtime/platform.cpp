// What the vendor's host libraries ask of a platform (platform_ascendc.h), and their messages.
#include <cstdarg>
#include <cstdio>

#include "runtime.hpp"
#include "tiling/platform/platform_ascendc.h"

// Messages of the vendor's host libraries: errors are shown.
extern "C" int CheckLogLevel(int, int level) { return level == 3; }
extern "C" void DlogRecord(int, int, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

using insight_trace_program::Device;

namespace platform_ascendc {
uint32_t PlatformAscendC::GetCoreNumAic() const {
    return static_cast<uint32_t>(Device::get().chip().cube_cores);
}
uint32_t PlatformAscendC::GetCoreNumAiv() const {
    return static_cast<uint32_t>(Device::get().chip().vector_cores);
}
void PlatformAscendC::GetCoreMemSize(const CoreMemType &memory, uint64_t &size) const {
    const bool a5 = Device::get().chip().soc.find("950") != std::string::npos;
    switch (memory) {
    case CoreMemType::L0_A:
    case CoreMemType::L0_B:
        size = 64 << 10;
        break;
    case CoreMemType::L0_C:
        size = (a5 ? 256 : 128) << 10;
        break;
    case CoreMemType::L1:
        size = 512 << 10;
        break;
    case CoreMemType::L2:
        size = static_cast<uint64_t>(Device::get().chip().l2);
        break;
    case CoreMemType::UB:
        size = static_cast<uint64_t>(Device::get().chip().ub);
        break;
    case CoreMemType::HBM:
        size = 64ull << 30;
        break;
    case CoreMemType::BT:
        size = 1 << 10;
        break;
    default:
        size = 0;
    }
}
SocVersion PlatformAscendC::GetSocVersion() const {
    return Device::get().chip().soc.find("950") != std::string::npos ? SocVersion::ASCEND950
                                                                     : SocVersion::ASCEND910B;
}
PlatformAscendC *PlatformAscendCManager::GetInstance() {
    static PlatformAscendC one;
    return &one;
}
NpuArch PlatformAscendC::GetCurNpuArch() const {
    return GetSocVersion() == SocVersion::ASCEND950 ? NpuArch::DAV_3510 : NpuArch::DAV_2201;
}
PlatformAscendC *PlatformAscendCManager::GetInstance(const char *) { return GetInstance(); }
} // namespace platform_ascendc
