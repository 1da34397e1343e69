// One rank: a put into its own window, a signal to itself, and a wait for a signal that may never come.
#include <cstdint>
#include <pto/pto-inst.hpp>

#include "pto/comm/pto_comm_inst.hpp"
#include "tensor.h"

using namespace pto;

extern "C" void kernel_entry(int64_t *args) {
    auto address = [args](int slot) { return reinterpret_cast<ChipTensor *>(args[slot])->buffer.addr; };
    using Rows = GlobalTensor<float, Shape<1, 1, 1, 10, 96>, pto::Stride<960, 960, 960, 96, 1>>;
    Rows from(reinterpret_cast<float *>(address(0))), to(reinterpret_cast<float *>(address(1)));
    Tile<TileType::Vec, float, 4, 64> ping, pong;
    TASSIGN(ping, 0x0);
    TASSIGN(pong, 0x4000);
    comm::TPUT(to, from, ping, pong);
    comm::TPUT<AtomicType::AtomicAdd>(to, from, ping);
    comm::Signal signal(reinterpret_cast<int32_t *>(address(2)));
    comm::TNOTIFY(signal, 2, comm::NotifyOp::AtomicAdd);
    comm::TWAIT(signal, static_cast<int32_t>(args[3]), comm::WaitCmp::GE);
    if (args[4]) {
        comm::AsyncSession session;
        comm::TPUT_ASYNC(to, from, session);
    }
}
