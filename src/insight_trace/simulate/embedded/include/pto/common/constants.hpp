// Sizes of the hardware that kernels compute with.
#pragma once

// Sizes and alignments of the on-chip memories for the preprocessor of kernels.
#if defined(PTO_NPU_ARCH_A5)
#define PTO_UBUF_SIZE_BYTES (256u * 1024u)
#define PTO_L0C_SIZE_BYTES  (256u * 1024u)
#else
#define PTO_UBUF_SIZE_BYTES (192u * 1024u)
#define PTO_L0C_SIZE_BYTES  (128u * 1024u)
#endif
#define PTO_CBUF_SIZE_BYTES  (512u * 1024u)
#define PTO_L0A_SIZE_BYTES   (64u * 1024u)
#define PTO_L0B_SIZE_BYTES   (64u * 1024u)
#define PTO_UBUF_ALIGN_BYTES 32u
#define PTO_CBUF_ALIGN_BYTES 32u

#include "pto/common/type.hpp"

namespace pto {

constexpr int REPEAT_BYTE = 256;
constexpr uint64_t BLOCK_MAX_PER_REPEAT = 8;
constexpr int REPEAT_MAX = 255;
constexpr int BLOCK_BYTE_SIZE = 32;
constexpr int FIXP_BURST_UNIT_LEN = 64;
constexpr uint32_t SHIFT_BLOCK_LEN = 4;
constexpr uint32_t SHIFT_BLOCK_BYTE = 5;
constexpr uint32_t SHIFT_FRACTAL_BYTE = 9;
constexpr int REPEAT_STRIDE_MAX = 255;
constexpr uint32_t TMP_UB_SIZE = 8 * 1024;
constexpr uint32_t TMP_UB_OFFSET = 184 * 1024;
constexpr uint64_t MASK_LEN = 64;
constexpr int BLOCK_LEN = 16;
constexpr int CUBE_BLOCK_SIZE = 512;
constexpr int C0_SIZE_BYTE = 32;
constexpr int FRACTAL_NZ_ROW = 16;
constexpr int ACC_C0_SIZE = 16;

namespace TileConfig {
constexpr int alignedSize = 32;
constexpr int fixedRowSize = 16;
constexpr int fixedColSize = 16;
constexpr int fixedMxRowSize = 16;
constexpr int fixedMxColSize = 2;
constexpr int fractalABSize = 512;
constexpr int fractalCSize = 1024;
constexpr int fractalMxSize = 32;
} // namespace TileConfig

// A pad value of the caller's own: its bits, with bit 32 set to tell it from the named ones.
constexpr PadValue pad_bits(uint32_t bits) {
    return static_cast<PadValue>(static_cast<uint64_t>(PadValue::CustomBase) | bits);
}
constexpr PadValue PadValueCustom(float value) { return pad_bits(__builtin_bit_cast(uint32_t, value)); }
constexpr PadValue PadValueCustom(int32_t value) { return pad_bits(static_cast<uint32_t>(value)); }
constexpr PadValue PadValueCustom(uint32_t value) { return pad_bits(value); }
constexpr PadValue PadValueCustom(int16_t value) { return pad_bits(static_cast<uint16_t>(value)); }
constexpr PadValue PadValueCustom(int8_t value) { return pad_bits(static_cast<uint8_t>(value)); }
constexpr PadValue PadValueCustom(uint8_t value) { return pad_bits(value); }
constexpr PadValue PadValueCustom(half value) { return pad_bits(value.bits); }
constexpr PadValue PadValueCustom(bfloat16_t value) { return pad_bits(value.bits); }
constexpr uint32_t getCustomPadBits(PadValue pad) { return static_cast<uint32_t>(pad); }
constexpr PadValue PadValueCustom16(uint16_t bits) { return pad_bits(bits); }

} // namespace pto
