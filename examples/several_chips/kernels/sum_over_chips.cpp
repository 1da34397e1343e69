// Every chip shows its part in its window, tells the others, waits for theirs, and adds up what all of them
// show.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "platform_comm/comm_context.h"
#include "pto/comm/pto_comm_inst.hpp"
#include "tensor.h"

using namespace pto;

constexpr int kCount = 256;
using Part = GlobalTensor<float, Shape<1, 1, 1, 1, kCount>, pto::Stride<kCount, kCount, kCount, kCount, 1>>;
using Row = Tile<TileType::Vec, float, 1, kCount>;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto data = [args](int slot) {
        auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[slot]);
        return reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
    };
    auto *context = reinterpret_cast<__gm__ CommContext *>(args[3]);
    const bool silent = args[4] != 0;
    const int rank = static_cast<int>(context->rankId), ranks = static_cast<int>(context->rankNum);
    auto window = [context](int of) { return reinterpret_cast<__gm__ float *>(context->windowsIn[of]); };
    auto signal = [&](int of, int from) {
        return comm::Signal(reinterpret_cast<__gm__ int32_t *>(window(of) + kCount) + from);
    };

    Row part, sum;
    TASSIGN(part, 0x0);
    TASSIGN(sum, 0x1000);
    Part own(data(0)), shown(window(rank)), out(data(1));
    TLOAD(part, own);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    TSTORE(shown, part);
    pipe_barrier(PIPE_ALL);
    if (!silent)
        for (int peer = 0; peer < ranks; ++peer) comm::TNOTIFY(signal(peer, rank), 1, comm::NotifyOp::Set);
    for (int peer = 0; peer < ranks; ++peer) comm::TWAIT(signal(rank, peer), 1, comm::WaitCmp::GE);

    for (int peer = 0; peer < ranks; ++peer) {
        Part theirs(window(peer));
        TLOAD(peer ? part : sum, theirs);
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
        if (peer) {
            TADD(sum, sum, part);
            pipe_barrier(PIPE_V);
        }
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(out, sum);
}
