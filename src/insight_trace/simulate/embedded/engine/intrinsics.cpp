// The functions that compiled kernels call (abi.hpp).
#include <cstdio>
#include <cstring>
#include <string>

#include "kernel_output.hpp"
#include "machine.hpp"
#include "scalar_memory.hpp"
#include "shared_values.hpp"
#include "vector_function.hpp"

using namespace insight_trace;
using namespace insight_trace::engine;

// A call of a tile library names no line of its own.
#define AT(at) ((at).file ? (at) : site_of(__builtin_return_address(0)))

static uint64_t pack_flag(PipeId from, PipeId to, int64_t event) {
    return uint64_t(from) | uint64_t(to) << 8 | uint64_t(event) << 16;
}

static void need_pipe(Core &core, PipeId pipe) {
    if (pipe >= PipeId::COUNT)
        core.unsupported("synchronisation with PIPE_MTE4, PIPE_MTE5 or PIPE_V2, which have no work here");
}

static int check_flag(Core &core, PipeId from, PipeId to, int64_t event) {
    need_pipe(core, from);
    need_pipe(core, to);
    if (from == PipeId::ALL || to == PipeId::ALL || (from == to && from == PipeId::S))
        core.kernel_error("a flag needs two pipes");
    if (event >= 0 && event < kEvents) return static_cast<int>(event);
    // libraries leave an id unset where both sides of a flag read it from the same place
    core.remark("event %lld is event %d: of an event's number the hardware keeps three bits",
                (long long)event, int(event & 7));
    return static_cast<int>(event & 7);
}

static int64_t sys_cnt(Core &core) {
    // a free-running counter of its own frequency; the core's time is in thousandths of a cycle
    return current_machine().now(core) / 1000 * core.parameters.sys_cnt_mhz / core.parameters.clock_mhz;
}

// A loop that does nothing but read the counter waits for a time: after a thousand turns each one stands for
// a hundredth of what was waited so far, so that a second of waiting is not a hundred million instructions.
static int64_t waited_longer(Core &core) {
    constexpr int64_t kTurns = 1000, kIdle = 2000000; // thousandths of a cycle between two turns
    CounterLoop &loop = core.counter_loop;
    const int64_t now = current_machine().now(core);
    if (loop.line != core.at.line || now - loop.last > kIdle + loop.step)
        loop = {core.at.line, now, now, 0, 0};
    loop.last = now;
    loop.step = ++loop.turns > kTurns ? (now - loop.first) / 100 : 0;
    return loop.step;
}

static void run_op(Core &core, Op op, const Operands &operands) {
    core.begin_call(op, operands);
    if (!core.repeat(op, operands)) {
        if (core.function) core.function->open(op, operands);
        lower(core, op, operands);
        if (core.function) core.function->close(core);
        core.keep_issued();
    }
    core.end_call();
}

// A call that is written down, or that a change makes another one.
[[gnu::noinline, gnu::cold]] static void run_watched(Machine &machine, Core &core, Op op,
                                                     const Operands &operands) {
    const uint32_t call = machine.next_call();
    const std::vector<Operand> list = changed_operands(machine.job().changes, call, operands);
    op = changed_op(machine.job().changes, call, op);
    const Operands given{list.data(), static_cast<uint32_t>(list.size())};
    Journal *journal = core.journal();
    if (journal) journal->begin_call(op, core.identity.index, given.list, given.count, core.rows());
    if (machine.job().numbers) machine.numbers.before(core, given);
    run_op(core, op, given);
    if (machine.job().numbers) machine.numbers.after(core, op, given);
    if (journal) journal->end_call(core.rows());
}

// A call that is issued now and done in an order of its own.
[[gnu::noinline, gnu::cold]] static void run_late(Machine &machine, Core &core, Op op,
                                                  const Operands &operands) {
    machine.interrupt(core);
    core.late->some();
    if (!LateWork::can_wait(op)) {
        core.late->drain();
        return run_op(core, op, operands);
    }
    core.used_pipes = 0;
    core.used_unit = {};
    core.computes = false;
    run_op(core, op, operands);
    core.late->op(core.used_pipes, op, operands);
}

extern "C" void insight_trace_op(Op op, const Operand *operands, uint32_t count, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    Machine &machine = current_machine();
    machine.progressed();
    core.scalar_work(core.tile_op_cost);
    if (core.late) return run_late(machine, core, op, {operands, count});
    if (machine.job().watches_calls()) return run_watched(machine, core, op, {operands, count});
    run_op(core, op, {operands, count});
}

static void set_flag(Core &core, PipeId from, PipeId to, int id) {
    Record &r = core.next_record(Instr::SET_FLAG, from, Form::Flag);
    r.a = pack_flag(from, to, id);
    core.clock.set_flag(from, to, id, r, core.at);
    if (core.late) core.late->set(from, to, id);
}
static void wait_flag(Core &core, PipeId from, PipeId to, int id) {
    Record &r = core.next_record(Instr::WAIT_FLAG, to, Form::Flag);
    r.a = pack_flag(from, to, id);
    core.clock.wait_flag(from, to, id, r, core.at);
    if (core.late) core.late->wait(from, to, id);
}

extern "C" void insight_trace_set_flag(PipeId from, PipeId to, int64_t event, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    if (current_machine().leaves_out(at)) return;
    set_flag(core, from, to, check_flag(core, from, to, event));
}

extern "C" void insight_trace_wait_flag(PipeId from, PipeId to, int64_t event, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    if (current_machine().leaves_out(at)) return;
    wait_flag(core, from, to, check_flag(core, from, to, event));
}

static Buffer &buffer_of(Core &core, PipeId pipe, uint64_t number) {
    need_pipe(core, pipe);
    if (!core.register_based())
        core.unsupported("get_buf and rls_buf: buffers by number, which this chip has not");
    if (pipe == PipeId::ALL || number >= kBuffers)
        core.kernel_error("buffer %llu of one pipe: there are 0 to %d", (unsigned long long)number,
                          kBuffers - 1);
    return core.buffers[size_t(number)];
}
static void hand_over(Core &core, Buffer &buffer, int from, int to) {
    set_flag(core, static_cast<PipeId>(from), static_cast<PipeId>(to),
             kEvents + int(&buffer - core.buffers.data()));
    ++buffer.raised[size_t(from)][size_t(to)];
    buffer.told = static_cast<int8_t>(to);
}
static void get_buffer(Core &core, PipeId pipe, uint64_t number) {
    Buffer &buffer = buffer_of(core, pipe, number);
    const auto to = static_cast<int8_t>(pipe);
    if (buffer.owner == to) return;
    if (const int from = buffer.owner; from != Buffer::kNobody) {
        if (buffer.told != to) hand_over(core, buffer, from, to);
        buffer.next[size_t(from)] = static_cast<int8_t>(to + 1);
    }
    for (int from = 0; from < kPipes; ++from)
        for (uint16_t &left = buffer.raised[size_t(from)][size_t(to)]; left; --left)
            wait_flag(core, static_cast<PipeId>(from), pipe, kEvents + int(number));
    buffer.owner = to;
    buffer.told = Buffer::kNobody;
    buffer.rows = core.rows();
}
static void release_buffer(Core &core, PipeId pipe, uint64_t number) {
    Buffer &buffer = buffer_of(core, pipe, number);
    const auto from = static_cast<int8_t>(pipe);
    if (buffer.owner != from)
        core.kernel_error("a pipe gives buffer %llu back that it did not take up",
                          (unsigned long long)number);
    // the library takes a buffer up and gives it back at once before it is used: there is nothing to wait for
    // yet
    if (core.rows() == buffer.rows) return;
    if (const int next = buffer.next[size_t(from)]; next && next - 1 != from)
        hand_over(core, buffer, from, next - 1);
    buffer.rows = core.rows();
}

extern "C" void insight_trace_barrier(PipeId pipe, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    if (current_machine().leaves_out(at)) return;
    need_pipe(core, pipe);
    core.barrier(pipe);
    if (core.late) core.late->barrier(pipe);
}

extern "C" void *insight_trace_local(Space space, uint64_t address, uint64_t bytes, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    uint8_t *place = core.local(space, address, bytes);
    if (Journal *journal = core.journal()) journal->hold(core.identity.index, space, address, bytes);
    return place;
}

extern "C" uint64_t insight_trace_get_value(const TileRef *tile, uint64_t index, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    int size = type_size(tile->type);
    uint64_t address = tile->address + index * uint64_t(size);
    core.scalar_access(Instr::LD_XD_XN_IMM, tile->space, address, size, core.parameters.scalar_load_ub);
    return read_bits(core.local(tile->space, address, uint64_t(size)), size);
}

extern "C" void insight_trace_set_value(const TileRef *tile, uint64_t index, uint64_t bits, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    int size = type_size(tile->type);
    uint64_t address = tile->address + index * uint64_t(size);
    core.scalar_access(Instr::ST_XD_XN_IMM, tile->space, address, size, core.parameters.scalar_store_ub);
    memcpy(core.local(tile->space, address, uint64_t(size)), &bits, static_cast<size_t>(size));
}

static void wait_for_core(Core &core, Instr instr, PipeId pipe, int flag) {
    if (flag < 0 || flag >= 32) core.kernel_error("cross-core flag %d does not exist", flag);
    Machine &machine = current_machine();
    machine.progressed();
    machine.wait_until(core, machine.cross_core.wait_text(core, instr == Instr::WAIT_INTRA_BLOCK, flag),
                       [&machine, &core, flag] { return machine.cross_core.ready(core, flag); });
    Record r = core.record(instr, pipe, Form::Plain);
    r.a = static_cast<uint64_t>(flag);
    // the scalar unit stops here whatever pipe is named: what follows reads what the other core wrote
    core.clock.meet(r, 1000, machine.cross_core.take(core, flag));
}

// Reads what another core may write: the clock goes on to the write, if a scalar store of a core made it.
static uint64_t read_shared(Core &core, uint64_t address, int size, int64_t milli) {
    const uint8_t *from = core.global(address, static_cast<uint64_t>(size), kReads);
    Record r = core.record(Instr::LD_DEV, PipeId::S, Form::Scalar);
    core.operand(3, kReads, Space::GM, Type::U8, address, size);
    r.a = address;
    const Written *written = current_machine().written(address);
    if (written && written->core != core.identity.index) {
        core.clock.meet(r, milli, current_machine().meet_store(*written));
    } else {
        core.clock.issue(PipeId::S, r, {milli, milli, 0, Stall::None}, core.at);
    }
    return read_bits(from, size);
}

static void store_shared(Core &core, Instr instr, uint64_t address, uint64_t size, uint64_t bits,
                         int64_t milli) {
    uint8_t *to = core.global(address, size);
    Record r = core.record(instr, PipeId::S, Form::Scalar);
    core.operand(3, instr == Instr::ST_ATOMIC ? kReadsAndWrites : kWrites, Space::GM, Type::U8, address,
                 static_cast<int64_t>(size));
    r.a = address;
    const uint32_t row = core.clock.store(r, milli);
    if (instr == Instr::ST_ATOMIC)
        add_shared(core, to, size, bits);
    else
        memcpy(to, &bits, static_cast<size_t>(size));
    current_machine().wrote(address, {core.identity.index, row});
}

static void wait_for_signal(Core &core, uint64_t address, uint64_t how, int32_t wanted, int64_t milli) {
    core.global(address, 4, kReads);
    auto value = [address] {
        int32_t now;
        memcpy(&now, reinterpret_cast<const void *>(address), sizeof now);
        return now;
    };
    const Region *region = current_machine().global_memory().find(address);
    char what[192];
    snprintf(what, sizeof what, "the signal at 0x%llx%s%.64s to be %s %d", (unsigned long long)address,
             region ? " in " : "", region ? region->name.c_str() : "", compare_text(how), wanted);
    current_machine().meets_other_blocks();
    current_machine().wait_until(core, what, [=] { return compares(value(), how, wanted); });
    read_shared(core, address, 4, milli);
}

// What a loop that polls memory sees at each turn: the line it looks at.
static uint64_t line_content(const Core &core, uint64_t address) {
    const GlobalMemory &gm = core.global_memory();
    address &= ~uint64_t(63);
    if (address < gm.base || address - gm.base + 64 > gm.size) return 0;
    uint64_t words[8], mixed = 0;
    memcpy(words, reinterpret_cast<const void *>(address), sizeof words);
    for (uint64_t word : words) mixed = (mixed ^ word) * 0x9e3779b97f4a7c15ull + (mixed >> 29);
    return mixed;
}

// Addresses of blocks for a transposition, from the scalar unit's memory or from UB.
static void set_va(Core &core, uint64_t first, uint64_t words, bool in_ub) {
    uint64_t addresses[8] = {};
    const size_t count = in_ub ? 4 : 8; // half a register from memory
    if (first + count > core.va.size()) core.kernel_error("VA%d does not exist", int(first / 8));
    const void *from = in_ub ? core.local(Space::UB, offset_in(core, Space::UB, words), 32)
                             : reinterpret_cast<const void *>(words);
    memcpy(addresses, from, count * sizeof(uint64_t));
    for (size_t i = 0; i < count; ++i) core.va[first + i] = offset_in(core, Space::UB, addresses[i]);
    Record r = core.record(Instr::MOVEVA, PipeId::V, Form::Plain);
    r.a = addresses[0];
    const int64_t cost = core.parameters.register_write;
    core.clock.issue(PipeId::V, r, {cost, cost, 0, Stall::None}, core.at);
}

extern "C" uint64_t insight_trace_intrinsic(Intrinsic which, uint64_t a, uint64_t b, uint64_t c, Site at) {
    Core &core = current_core();
    core.at = at = AT(at);
    Machine &machine = current_machine();
    const bool flag = which == Intrinsic::SetCrossCore || which == Intrinsic::WaitFlagDev ||
                      which == Intrinsic::SetIntraBlock || which == Intrinsic::WaitIntraBlock ||
                      which == Intrinsic::GetBuffer || which == Intrinsic::ReleaseBuffer;
    if (flag && machine.leaves_out(at)) return 0;
    switch (which) {
    case Intrinsic::Dcci:
        core.scalar(Instr::DCCI, b ? 0 : a, core.parameters.scalar_dcci); // 0: the whole cache
        forget_scalar_lines(a, b != 0);
        machine.poll(core, a, line_content(core, a)); // a loop that polls memory goes through here
        return 0;
    case Intrinsic::Dsb:
        core.scalar(Instr::DSB, a, core.parameters.scalar_dsb);
        return 0;
    case Intrinsic::SetMaskNorm:
        core.control &= ~kCountMode;
        core.set_register(PipeId::V, 0);
        return 0;
    case Intrinsic::SetMaskCount:
        core.control |= kCountMode;
        core.set_register(PipeId::V, 1);
        return 0;
    case Intrinsic::SetVectorMask:
        core.spr_of(Spr::MASK_HIGH) = a;
        core.spr_of(Spr::MASK_LOW) = b;
        core.set_register(PipeId::V, b);
        return 0;
    case Intrinsic::SetSpr:
        if (a >= kSprCount) core.kernel_error("there is no special register %llu", (unsigned long long)a);
        core.spr[size_t(a)] = b;
        core.set_register(static_cast<PipeId>(c), b);
        return 0;
    case Intrinsic::GetSpr:
        if (a >= kSprCount) core.kernel_error("there is no special register %llu", (unsigned long long)a);
        core.scalar(Instr::MOV_XD_SPR, core.spr[size_t(a)], 1000);
        return core.spr[size_t(a)];
    case Intrinsic::SetVa:
        set_va(core, a, b, c != 0);
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
        core.atomic_op = 0;
        core.set_register(PipeId::S, 0);
        return 0;
    case Intrinsic::SetAtomicAdd:
        // set_atomic_add names what is done, the others the type; either may come first
        if (a)
            core.atomic_type = static_cast<uint8_t>(a + 1);
        else if (!core.atomic_type)
            core.atomic_type = 1;
        if (!a) core.atomic_op = 0;
        core.set_register(PipeId::S, a + 1);
        return 0;
    case Intrinsic::SetAtomicOp:
        core.atomic_op = static_cast<uint8_t>(a);
        core.set_register(PipeId::S, a);
        return 0;
    case Intrinsic::Print:
        core.barrier(PipeId::ALL);
        print_for_kernel(reinterpret_cast<const char *>(a));
        return 0;
    case Intrinsic::LookAtWords:
        core.looks_at_words = !core.looks_at_words;
        return 0;
    case Intrinsic::LocalBase:
        if (b) core.plain_offsets = true;
        return reinterpret_cast<uint64_t>(core.local(static_cast<Space>(a), 0, 1));
    case Intrinsic::GetSysCnt:
        machine.yield(core);
        core.scalar(Instr::MOV_XD_SPR, 0, core.parameters.scalar_sys_cnt + waited_longer(core));
        return static_cast<uint64_t>(sys_cnt(core));
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
        machine.poll(core, a, line_content(core, a));
        return read_shared(core, a, static_cast<int>(b), core.parameters.scalar_load_gm);
    case Intrinsic::StoreDev:
        machine.progressed();
        // a message at the flags' own place is the scalar unit's way to raise one
        if (core.ffts_base && a == core.ffts_base)
            return insight_trace_intrinsic(Intrinsic::SetCrossCore, static_cast<uint64_t>(PipeId::S), c, 0,
                                           at);
        store_shared(core, Instr::ST_DEV, a, b, c, core.parameters.scalar_store_gm);
        return 0;
    case Intrinsic::AtomicAdd:
        machine.progressed();
        store_shared(core, Instr::ST_ATOMIC, a, b, c, core.parameters.scalar_store_gm);
        return 0;
    case Intrinsic::SetStoreAtomic:
        core.store_atomic_type = static_cast<uint8_t>(a);
        core.store_atomic_op = static_cast<uint8_t>(b);
        core.set_register(PipeId::S, a << 8 | b);
        return 0;
    case Intrinsic::WaitSignal:
        wait_for_signal(core, a, b, static_cast<int32_t>(c), core.parameters.scalar_load_gm);
        return 0;
    case Intrinsic::TestSignal:
        machine.poll(core, a, line_content(core, a));
        return compares(static_cast<int32_t>(read_shared(core, a, 4, core.parameters.scalar_load_gm)), b,
                        static_cast<int32_t>(c));
    case Intrinsic::DmaCopy: {
        // done when it is asked for, which a device may do too; how long it takes there is not modelled
        machine.progressed();
        machine.meets_other_blocks();
        void *to = core.global(a, c);
        const void *from = core.global(b, c, kReads);
        if (!machine.job().timing_only) memmove(to, from, c);
        core.scalar(Instr::ST_DEV, a, core.parameters.scalar_store_gm);
        return 0;
    }
    case Intrinsic::SetCrossCore: {
        PipeId pipe = static_cast<PipeId>(a);
        need_pipe(core, pipe);
        Record r = core.record(Instr::SET_CROSS_CORE, pipe, Form::Plain);
        r.a = b;
        if (core.late && pipe != PipeId::S) core.late->drain(pipe);
        uint32_t row = core.clock.signal(pipe, r, at);
        machine.cross_core.set(machine, core, static_cast<int>(b >> 4 & 3), static_cast<int>(b >> 8 & 15),
                               row);
        return 0;
    }
    case Intrinsic::WaitFlagDev:
        wait_for_core(core, Instr::WAIT_FLAG_DEV, static_cast<PipeId>(a), static_cast<int>(b));
        return 0;
    case Intrinsic::SetIntraBlock: {
        PipeId pipe = static_cast<PipeId>(a);
        need_pipe(core, pipe);
        Record r = core.record(Instr::SET_INTRA_BLOCK, pipe, Form::Plain);
        r.a = b;
        if (core.late && pipe != PipeId::S) core.late->drain(pipe);
        uint32_t row = core.clock.signal(pipe, r, at);
        machine.cross_core.set(machine, core, kOneToOne, static_cast<int>(b), row);
        return 0;
    }
    case Intrinsic::WaitIntraBlock:
        wait_for_core(core, Instr::WAIT_INTRA_BLOCK, static_cast<PipeId>(a), static_cast<int>(b));
        return 0;
    case Intrinsic::GetBuffer:
        get_buffer(core, static_cast<PipeId>(a), b);
        return 0;
    case Intrinsic::ReleaseBuffer:
        release_buffer(core, static_cast<PipeId>(a), b);
        return 0;
    case Intrinsic::SetFftsBase:
        core.ffts_base = a;
        return 0;
    case Intrinsic::GetFftsBase:
        return core.ffts_base;
    case Intrinsic::Nop:
        core.scalar(Instr::NOP, a,
                    a ? 0 : 1000); // with a value it is a mark of the user's, which costs nothing
        return 0;
    case Intrinsic::Trap:
        core.kernel_error("the kernel executed trap()");
    case Intrinsic::Unsupported:
        core.unsupported("%s", reinterpret_cast<const char *>(a));
    }
    return 0;
}
