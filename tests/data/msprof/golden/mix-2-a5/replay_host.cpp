// The host side of a replay, written by Insight Trace: buffers, descriptors and the 50-slot args arrays of one
// dispatch. Runs in the workspace directory, where it finds payloads/ and leaves outputs/.
#include <acl/acl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" void launch_replay(void *tables, void *stream);

namespace {

constexpr int kSlots = 50;
constexpr int kLocalContextSlot = 48;
constexpr int kGlobalContextSlot = 49;
constexpr int kBlocks = 1;         // blocks that are launched
constexpr int32_t kBlockCount = 1;  // blocks that the kernel is told of
constexpr int kCores = 3;          // cube, vector 0, vector 1
constexpr size_t kDescriptorBytes = 128;
constexpr size_t kContextBytes = 64;  // both contexts fit, and each has a cache line of its own

struct Buffer {
    uint64_t bytes;
    uint64_t first;  // which byte of the real buffer the allocation starts at
};

struct Payload {
    size_t buffer;
    const char *file;
    uint64_t at;  // byte of the allocation
    uint64_t bytes;
};

struct Tensor {
    int slot;
    size_t buffer;
    uint64_t size;
    uint64_t start_offset;
    uint8_t dtype;
    uint8_t contiguous;
    uint32_t dims;
    uint32_t shape[5];
    uint32_t strides[5];
    uint64_t extent;
};

struct Scalar {
    int slot;
    uint64_t bits;
};

const std::vector<Buffer> kBuffers = {
    {262656ULL, 0ULL},
    {262656ULL, 0ULL},
    {262656ULL, 0ULL},
    {262656ULL, 0ULL},
    {262656ULL, 0ULL},
};

const std::vector<Payload> kPayloads = {
    {0, "payloads/slot00.bin", 20ULL, 40ULL},
    {2, "payloads/slot02.bin", 0ULL, 32ULL},
};

const std::vector<Payload> kOutputs = {
    {1, "outputs/slot01.bin", 0ULL, 24ULL},
    {3, "outputs/slot03.bin", 64ULL, 32ULL},
    {4, "outputs/slot05.bin", 0ULL, 32ULL},
};

const std::vector<Tensor> kTensors = {
    // "in0", "FLOAT32"
    {0, 0, 68ULL, 5ULL, 0, 0, 2,
     {3u, 2u, 0u, 0u, 0u}, {4u, 1u, 0u, 0u, 0u}, 10ULL},
    // "out1", "FLOAT32"
    {1, 1, 24ULL, 0ULL, 0, 1, 2,
     {3u, 2u, 0u, 0u, 0u}, {2u, 1u, 0u, 0u, 0u}, 6ULL},
    // "in2", "FLOAT32"
    {2, 2, 32ULL, 0ULL, 0, 1, 1,
     {8u, 0u, 0u, 0u, 0u}, {1u, 0u, 0u, 0u, 0u}, 8ULL},
    // "out3", "FLOAT32"
    {3, 3, 96ULL, 16ULL, 0, 1, 1,
     {8u, 0u, 0u, 0u, 0u}, {1u, 0u, 0u, 0u, 0u}, 8ULL},
    // "out5", "INT32"
    {5, 4, 32ULL, 0ULL, 2, 1, 2,
     {2u, 4u, 0u, 0u, 0u}, {4u, 1u, 0u, 0u, 0u}, 8ULL},
};

const std::vector<Scalar> kScalars = {
    // "scale", "UINT64"
    {6, 1056964608ULL},
};

#define CHECK(call)                                                                   \
    do {                                                                              \
        const int code = static_cast<int>(call);                                      \
        if (code != 0) {                                                              \
            std::fprintf(stderr, "replay_host: %s failed with %d\n", #call, code);    \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

constexpr uint64_t kChunk = 64ULL << 20;

// Chunks that are all zero are skipped: the buffer is zero already, and a view with wide strides is mostly gaps.
bool load(const Payload &payload, void *buffer) {
    std::FILE *file = std::fopen(payload.file, "rb");
    if (file == nullptr) {
        std::fprintf(stderr, "replay_host: %s cannot be opened\n", payload.file);
        return false;
    }
    bool good = true;
    std::vector<uint8_t> chunk(std::min(payload.bytes, kChunk));
    for (uint64_t done = 0; good && done < payload.bytes; done += chunk.size()) {
        chunk.resize(std::min(payload.bytes - done, kChunk));
        good = std::fread(chunk.data(), 1, chunk.size(), file) == chunk.size();
        if (!good) {
            std::fprintf(stderr, "replay_host: %s is too short\n", payload.file);
        } else if (std::any_of(chunk.begin(), chunk.end(), [](uint8_t byte) { return byte != 0; })) {
            uint8_t *place = static_cast<uint8_t *>(buffer) + payload.at + done;
            good = aclrtMemcpy(place, chunk.size(), chunk.data(), chunk.size(), ACL_MEMCPY_HOST_TO_DEVICE) == 0;
        }
    }
    std::fclose(file);
    return good;
}

bool save(const Payload &output, const void *buffer) {
    std::FILE *file = std::fopen(output.file, "wb");
    if (file == nullptr) {
        std::fprintf(stderr, "replay_host: %s cannot be written\n", output.file);
        return false;
    }
    bool good = true;
    std::vector<uint8_t> chunk(std::min(output.bytes, kChunk));
    for (uint64_t done = 0; good && done < output.bytes; done += chunk.size()) {
        chunk.resize(std::min(output.bytes - done, kChunk));
        const uint8_t *place = static_cast<const uint8_t *>(buffer) + output.at + done;
        good = aclrtMemcpy(chunk.data(), chunk.size(), place, chunk.size(), ACL_MEMCPY_DEVICE_TO_HOST) == 0 &&
               std::fwrite(chunk.data(), 1, chunk.size(), file) == chunk.size();
    }
    if (std::fclose(file) != 0 || !good) {
        std::fprintf(stderr, "replay_host: %s could not be written\n", output.file);
        return false;
    }
    return true;
}

template <typename T>
void put(std::vector<uint8_t> &bytes, size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(value));
}

void put_descriptor(std::vector<uint8_t> &bytes, size_t at, const Tensor &tensor, uint64_t address) {
    put<uint64_t>(bytes, at + 0, address);
    put<uint64_t>(bytes, at + 8, tensor.size);
    put<uint64_t>(bytes, at + 24, tensor.start_offset);
    put<uint32_t>(bytes, at + 36, tensor.dims);
    put<uint8_t>(bytes, at + 40, tensor.dtype);
    put<uint8_t>(bytes, at + 42, tensor.contiguous);
    for (size_t i = 0; i < 5; ++i) {
        put<uint32_t>(bytes, at + 44 + 4 * i, tensor.shape[i]);
        put<uint32_t>(bytes, at + 72 + 4 * i, tensor.strides[i]);
    }
    put<uint64_t>(bytes, at + 64, tensor.extent);
}

uint64_t address_of(const void *pointer) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer)); }

}  // namespace

int main() {
    const char *device_text = std::getenv("ACL_DEVICE_ID");
    const int32_t device = device_text != nullptr ? std::atoi(device_text) : 0;
    CHECK(aclInit(nullptr));
    CHECK(aclrtSetDevice(device));
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream));

    std::vector<void *> buffers(kBuffers.size(), nullptr);
    for (size_t i = 0; i < kBuffers.size(); ++i) {
        CHECK(aclrtMalloc(&buffers[i], kBuffers[i].bytes, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK(aclrtMemset(buffers[i], kBuffers[i].bytes, 0, kBuffers[i].bytes));
    }
    for (const Payload &payload : kPayloads) {
        if (!load(payload, buffers[payload.buffer])) {
            return 1;
        }
    }

    // One allocation for all that the kernel reads about its arguments.
    const size_t local_at = kTensors.size() * kDescriptorBytes;
    const size_t global_at = local_at + kBlocks * kContextBytes;
    const size_t tables_at = global_at + 2 * kContextBytes;
    std::vector<uint8_t> meta(tables_at + static_cast<size_t>(kBlocks) * kCores * kSlots * sizeof(int64_t), 0);
    void *device_meta = nullptr;
    CHECK(aclrtMalloc(&device_meta, meta.size(), ACL_MEM_MALLOC_HUGE_FIRST));
    const uint64_t base = address_of(device_meta);

    for (size_t i = 0; i < kTensors.size(); ++i) {
        const Tensor &tensor = kTensors[i];
        const uint64_t address = address_of(buffers[tensor.buffer]) - kBuffers[tensor.buffer].first;
        put_descriptor(meta, i * kDescriptorBytes, tensor, address);
    }
    for (int block = 0; block < kBlocks; ++block) {
        put<int32_t>(meta, local_at + block * kContextBytes, block);
        put<int32_t>(meta, local_at + block * kContextBytes + 4, kBlockCount);
    }
    put<int32_t>(meta, global_at + kContextBytes, 1);  // the sub-block of the second vector core; the first has 0
    for (int block = 0; block < kBlocks; ++block) {
        for (int core = 0; core < kCores; ++core) {
            const size_t table = tables_at + static_cast<size_t>(block * kCores + core) * kSlots * sizeof(int64_t);
            for (size_t i = 0; i < kTensors.size(); ++i) {
                put<uint64_t>(meta, table + kTensors[i].slot * sizeof(int64_t), base + i * kDescriptorBytes);
            }
            for (const Scalar &scalar : kScalars) {
                put<uint64_t>(meta, table + scalar.slot * sizeof(int64_t), scalar.bits);
            }
            const size_t lane = core == 2 ? 1 : 0;
            put<uint64_t>(meta, table + kLocalContextSlot * sizeof(int64_t), base + local_at + block * kContextBytes);
            put<uint64_t>(meta, table + kGlobalContextSlot * sizeof(int64_t), base + global_at + lane * kContextBytes);
        }
    }
    CHECK(aclrtMemcpy(device_meta, meta.size(), meta.data(), meta.size(), ACL_MEMCPY_HOST_TO_DEVICE));

    launch_replay(static_cast<uint8_t *>(device_meta) + tables_at, stream);
    CHECK(aclrtSynchronizeStream(stream));

    for (const Payload &output : kOutputs) {
        if (!save(output, buffers[output.buffer])) {
            return 1;
        }
    }
    std::printf("replay_host: done\n");

    for (void *buffer : buffers) {
        aclrtFree(buffer);
    }
    aclrtFree(device_meta);
    aclrtDestroyStream(stream);
    aclrtResetDevice(device);
    aclFinalize();
    return 0;
}
