// The functions that compiled kernels call (abi.hpp).
#include <cstring>
#include <string>

#include "elements.hpp"
#include "machine.hpp"
#include "scalar_memory.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

static uint64_t pack_flag(PipeId from, PipeId to, int64_t event) {
    return uint64_t(from) | uint64_t(to) << 8 | uint64_t(event) << 16;
}

static int check_flag(Core &core, PipeId from, PipeId to, int64_t event) {
    if (from >= PipeId::COUNT || to >= PipeId::COUNT || from == PipeId::ALL || to == PipeId::ALL ||
        from == to)
        core.kernel_error("a flag needs two different pipes");
    if (event < 0 || event >= kEvents)
        core.kernel_error("event %lld does not exist (0 to %d)", (long long)event, kEvents - 1);
    return static_cast<int>(event);
}

static uint64_t read_bits(const uint8_t *from, int size) {
    uint64_t bits = 0;
    memcpy(&bits, from, static_cast<size_t>(size));
    return bits;
}

static int64_t sys_cnt(Core &core) {
    // a free-running counter of its own frequency
    return core.clock.now() * core.parameters.get("sys_cnt.mhz", 50000) /
           core.parameters.get("clock.mhz", 1850000);
}

extern "C" void insight_trace_op(Op op, const Operand *operands, uint32_t count, Site at) {
    Core &core = current_core();
    core.at = at;
    core.scalar_work(core.tile_op_cost);
    op_bodies[static_cast<int>(op)](core, {operands, count});
}

extern "C" void insight_trace_set_flag(PipeId from, PipeId to, int64_t event, Site at) {
    Core &core = current_core();
    core.at = at;
    int id = check_flag(core, from, to, event);
    Record r = core.record(Instr::SET_FLAG, from, Form::Flag);
    r.a = pack_flag(from, to, event);
    core.clock.set_flag(from, to, id, r, at);
}

extern "C" void insight_trace_wait_flag(PipeId from, PipeId to, int64_t event, Site at) {
    Core &core = current_core();
    core.at = at;
    int id = check_flag(core, from, to, event);
    Record r = core.record(Instr::WAIT_FLAG, to, Form::Flag);
    r.a = pack_flag(from, to, event);
    core.clock.wait_flag(from, to, id, r, at);
}

extern "C" void insight_trace_barrier(PipeId pipe, Site at) {
    Core &core = current_core();
    core.at = at;
    core.barrier(pipe);
}

extern "C" void *insight_trace_local(Space space, uint64_t address, uint64_t bytes, Site at) {
    Core &core = current_core();
    core.at = at;
    return core.local(space, address, bytes);
}

extern "C" uint64_t insight_trace_get_value(const TileRef *tile, uint64_t index, Site at) {
    Core &core = current_core();
    core.at = at;
    int size = type_size(tile->type);
    uint64_t address = tile->address + index * uint64_t(size);
    core.scalar(Instr::LD_XD_XN_IMM, address, core.parameters.get("scalar.load_ub", 1000));
    return read_bits(core.local(tile->space, address, uint64_t(size)), size);
}

extern "C" void insight_trace_set_value(const TileRef *tile, uint64_t index, uint64_t bits, Site at) {
    Core &core = current_core();
    core.at = at;
    int size = type_size(tile->type);
    uint64_t address = tile->address + index * uint64_t(size);
    core.scalar(Instr::ST_XD_XN_IMM, address, core.parameters.get("scalar.store_ub", 1000));
    memcpy(core.local(tile->space, address, uint64_t(size)), &bits, static_cast<size_t>(size));
}

static void wait_for_core(Core &core, Instr instr, PipeId pipe, int flag) {
    Machine &machine = current_machine();
    machine.wait_until(core, std::string(instr_name(instr)) + " flag " + std::to_string(flag),
                       [&machine, &core, flag] { return machine.cross_core.ready(core, flag); });
    auto [time, row] = machine.cross_core.take(core, flag);
    Record r = core.record(instr, pipe, Form::Plain);
    r.a = static_cast<uint64_t>(flag);
    r.partner = row;
    int64_t now = core.clock.now();
    int64_t until = time + core.parameters.get("cross_core.latency", 1000);
    int64_t cycles = until > now ? until - now : 1000;
    if (until > now) r.stall = static_cast<uint8_t>(Stall::CrossCore);
    // the scalar unit stops here whatever pipe is named: what follows reads what the other core wrote
    core.clock.issue(PipeId::S, r, {cycles, cycles, 0, Stall::None}, core.at);
}

extern "C" uint64_t insight_trace_intrinsic(Intrinsic which, uint64_t a, uint64_t b, uint64_t c, Site at) {
    Core &core = current_core();
    core.at = at;
    Machine &machine = current_machine();
    auto cycles = [&core](const char *name) { return core.parameters.get(name, 1000); };
    switch (which) {
    case Intrinsic::Dcci:
        core.scalar(Instr::DCCI, a, cycles("scalar.dcci"));
        forget_scalar_lines(a, b != 0);
        machine.yield(core); // a loop that polls memory goes through here
        return 0;
    case Intrinsic::Dsb:
        core.scalar(Instr::DSB, a, cycles("scalar.dsb"));
        return 0;
    case Intrinsic::SetMaskNorm:
        core.set_register(PipeId::V, 0);
        return 0;
    case Intrinsic::SetMaskCount:
        core.set_register(PipeId::V, 1);
        return 0;
    case Intrinsic::SetVectorMask:
        core.set_register(PipeId::V, b);
        return 0;
    case Intrinsic::SetCtrl:
        core.control = a;
        core.set_register(PipeId::S, a);
        return 0;
    case Intrinsic::GetCtrl:
        core.scalar(Instr::MOV_XD_SPR, core.control, 1000);
        return core.control;
    case Intrinsic::SetAtomicNone:
        core.atomic_type = 0;
        core.set_register(PipeId::S, 0);
        return 0;
    case Intrinsic::SetAtomicAdd:
        core.atomic_type = static_cast<uint8_t>(a + 1);
        core.set_register(PipeId::S, a + 1);
        return 0;
    case Intrinsic::GetSysCnt: {
        machine.yield(core);
        core.scalar(Instr::MOV_XD_SPR, 0, cycles("scalar.sys_cnt"));
        return static_cast<uint64_t>(sys_cnt(core));
    }
    case Intrinsic::GetBlockIdx:
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        return static_cast<uint64_t>(core.identity.block);
    case Intrinsic::GetBlockNum:
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        return static_cast<uint64_t>(core.identity.block_count);
    case Intrinsic::GetSubBlockId:
        core.scalar(Instr::MOV_XD_SPR, 0, 1000);
        return static_cast<uint64_t>(core.identity.sub_block);
    case Intrinsic::GetSubBlockDim: {
        int lanes = 0;
        for (const CoreJob &other : machine.job().cores)
            lanes += !other.identity.cube && other.identity.block == core.identity.block;
        return static_cast<uint64_t>(lanes ? lanes : 1);
    }
    case Intrinsic::GetCoreId:
        return core.identity.index;
    case Intrinsic::LoadDev:
        machine.yield(core);
        core.scalar(Instr::LD_DEV, a, cycles("scalar.load_gm"));
        return read_bits(core.global(a, b), static_cast<int>(b));
    case Intrinsic::StoreDev:
        core.scalar(Instr::ST_DEV, a, cycles("scalar.store_gm"));
        memcpy(core.global(a, b), &c, static_cast<size_t>(b));
        return 0;
    case Intrinsic::AtomicAdd: {
        core.scalar(Instr::ST_ATOMIC, a, cycles("scalar.store_gm"));
        uint8_t *target = core.global(a, b);
        uint64_t sum = read_bits(target, static_cast<int>(b)) + c;
        memcpy(target, &sum, static_cast<size_t>(b));
        return 0;
    }
    case Intrinsic::SetCrossCore: {
        PipeId pipe = static_cast<PipeId>(a);
        Record r = core.record(Instr::SET_CROSS_CORE, pipe, Form::Plain);
        r.a = b;
        uint32_t row = core.clock.signal(pipe, r, at);
        int64_t time = pipe == PipeId::S ? core.clock.now() : core.clock.drained(pipe, at);
        machine.cross_core.set(machine, core, static_cast<int>(b >> 4 & 3), static_cast<int>(b >> 8 & 15),
                               time, row);
        return 0;
    }
    case Intrinsic::WaitFlagDev:
        wait_for_core(core, Instr::WAIT_FLAG_DEV, static_cast<PipeId>(a), static_cast<int>(b));
        return 0;
    case Intrinsic::SetIntraBlock: {
        PipeId pipe = static_cast<PipeId>(a);
        Record r = core.record(Instr::SET_INTRA_BLOCK, pipe, Form::Plain);
        r.a = b;
        uint32_t row = core.clock.signal(pipe, r, at);
        int64_t time = pipe == PipeId::S ? core.clock.now() : core.clock.drained(pipe, at);
        machine.cross_core.set_intra(machine, core, static_cast<int>(b), time, row);
        return 0;
    }
    case Intrinsic::WaitIntraBlock:
        wait_for_core(core, Instr::WAIT_INTRA_BLOCK, static_cast<PipeId>(a), static_cast<int>(b));
        return 0;
    case Intrinsic::SetFftsBase:
        core.ffts_base = a;
        return 0;
    case Intrinsic::GetFftsBase:
        return core.ffts_base;
    case Intrinsic::Nop:
        core.scalar(Instr::NOP, 0, 1000);
        return 0;
    case Intrinsic::Trap:
        core.kernel_error("the kernel executed trap()");
    case Intrinsic::Unsupported:
        core.unsupported("%s", reinterpret_cast<const char *>(a));
    }
    return 0;
}
