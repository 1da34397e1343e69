// One AI core as tile ops see it: its memories, and the hardware instructions that an op issues.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "local_memory.hpp"
#include "operands.hpp"
#include "parameters.hpp"
#include "records.hpp"
#include "scalar_code.hpp"
#include "touched_lines.hpp"

namespace insight_trace::engine {

struct Region { // a buffer of global memory
    uint64_t address, size, padded;
    std::string name;
    uint64_t view = 0;        // bytes up to the end of what the kernel is told of it; 0: all
    bool only_output = false; // nothing in it before the run is meant to be read
    bool exact = false;       // going past its size, into its padding, is worth a word
    uint64_t writable = 0;    // bytes that may be written; 0: as many as may be touched
    mutable uint8_t used = 0; // what the run did to it, as Role bits
};

// Something a kernel did that a device lets it do, and that is hardly meant.
struct Remark {
    Site at;
    std::string text;
};

struct GlobalMemory {
    std::vector<Region> regions; // by address
    uint64_t base = 0, size = 0;
    TouchedLines *watched = nullptr;            // where it is marked what is touched, if it is
    const Region *find(uint64_t address) const; // the region at or before it
};

struct CoreIdentity {
    uint16_t index; // row in the job's list of cores
    bool cube;      // aic, else aiv
    int32_t block, block_count;
    int32_t sub_block; // lane of a vector core in its cluster
    std::string name;  // core0.veccore0
};

// A loop on one line that reads the system counter again and again.
struct CounterLoop {
    uint32_t line = 0;
    int64_t first = 0, last = 0, step = 0, turns = 0;
};
class VectorFunction;
class RegisterFunction;
class LateWork;
struct Operands;
struct VectorInstruction;

// A vector instruction of a tile op: its name, and what it has beside operands.
struct Operation {
    Instr instr;
    uint64_t number = 0;  // a scalar operand, as the bits of its type
    uint8_t mode = 0;     // isa/vector_unit.hpp
    bool executes = true; // else a unit has left its results already
    // Of instructions that take a count as that of each repeat (VREDUCEV2): the repeat field, and the count.
    int32_t rows = 0, of_each = 0;
    template <class Mode = int>
    Operation(Instr instr_, uint64_t number_ = 0, Mode mode_ = {})
        : instr(instr_), number(number_), mode(static_cast<uint8_t>(mode_)) {}
};
inline Operation issued_only(Instr instr) {
    Operation operation(instr);
    operation.executes = false;
    return operation;
}
inline Operation by_row(Operation operation, int32_t rows, int32_t count) {
    operation.rows = rows;
    operation.of_each = count;
    return operation;
}

// Places of what a chip with vector functions keeps in registers between the steps of an op, where a2a3 has a
// scratch tile. No kernel can name them.
constexpr uint32_t kRegisterFile = 1u << 30;
constexpr uint32_t kRegisterFileBytes = 1u << 19;

constexpr uint64_t kCountMode = 1ull << 56; // CTRL: the vector mask is a number of elements

// An address of global memory with this bit is the same place, with the hint that L2 keeps nothing of the
// access: AscendC adds an offset that the runtime chooses (ascendc.py has the same one).
constexpr uint64_t kPastL2 = uint64_t(1) << 47;

class Core {
  public:
    Core(const CoreIdentity &identity, const Parameters &parameters, Records &records, GlobalMemory &gm,
         bool timing_only, uint8_t unwritten = 0);

    ~Core();

    const CoreIdentity identity;
    // False with --timing-only: issue instructions, do no arithmetic, move no bytes.
    bool computes;
    // Loads of the same bytes to the same place, one after the other: a loop that waits for what another core
    // writes.
    uint64_t loaded_from = 0, loaded_to = 0, loaded_again = 0;
    bool looked = false;        // the scalar unit read on-chip memory since the last one
    bool plain_offsets = false; // pointers of a library are offsets, whatever the memory
    // The other half: arithmetic and bytes, of instructions that were issued before (late_work.hpp).
    bool silent = false;
    mutable uint32_t used_pipes = 0; // by what was issued, as bits
    UnitUse used_unit;               // and of the accumulator
    std::unique_ptr<LateWork> late;  // null: everything happens when it is issued
    Site at{};                       // the kernel line that is being executed
    const char *op = "";             // the tile op that is being lowered

    // --- memories. Checked against the size of the space; a kernel that goes past it fails with its line.
    uint8_t *local(Space space, uint64_t address, uint64_t bytes);
    template <class T> T *local_as(Space space, uint64_t address, uint64_t count) {
        return reinterpret_cast<T *>(local(space, address, count * sizeof(T)));
    }
    const GlobalMemory &global_memory() const { return gm_; }
    uint64_t space_size(Space space) const { return sizes_[static_cast<int>(space)]; }
    // A byte offset in `space`, from one or from an address that a kernel formed of one: addresses of this
    // core's memories lie below 4 GiB (local_memory.hpp), so they survive fields of 32 bits and masks.
    uint64_t offset_of(Space space, uint64_t address) const;
    // Host pointer to `bytes` of global memory; fails when any of them lies outside every buffer. `role`:
    // what is done there.
    uint8_t *global(uint64_t address, uint64_t bytes, Role role = kReadsAndWrites);

    // --- instructions. `elements`: how many elements all repeats together work on (for utilisation).
    void vector(Operation operation, Type type, int repeat, int64_t elements, VectorOperand dst,
                VectorOperand src0 = {}, VectorOperand src1 = {});
    // Executes one instruction and issues it (isa/vector_unit.hpp).
    void issue(const VectorInstruction &instruction);
    // Count mode: one instruction for `elements` consecutive elements, with the mask switches around it.
    void vector_count(Operation operation, Type type, int64_t elements, VectorOperand dst,
                      VectorOperand src0 = {}, VectorOperand src1 = {});
    // One instruction under a count mask that the caller has set: no limit of 255 repeats.
    void vector_counted(Operation operation, Type type, int64_t elements, VectorOperand dst,
                        VectorOperand src0 = {}, VectorOperand src1 = {});
    // GM <-> on chip: `bursts` pieces of `burst_bytes`, `gm_step` bytes apart in GM. An area that is only an
    // address stands for those pieces in GM, and for the same bytes one after the other on chip.
    void transfer(Instr instr, Type type, const Area &gm, const Area &local, int64_t bursts,
                  int64_t burst_bytes, int64_t gm_step);
    // On chip: `bytes` in `repeat` pieces, into the memory that the instruction names, or `to`.
    void move(Instr instr, Type type, const Area &dst, const Area &src, int64_t repeat, int64_t bytes,
              const Space *to = nullptr);
    void multiply(Type type, int64_t m, int64_t k, int64_t n, const Area &dst, const Area &left,
                  const Area &right);
    // Out of the accumulator; `to_nd` when boxes become rows on the way, `gm_step` bytes apart (0: no gap).
    // With an address in GM it goes there.
    void fixpipe(Instr instr, Type type, const Area &gm, const Area &dst, const Area &src, int64_t rows,
                 int64_t cols, int64_t bytes, bool to_nd = false, int64_t gm_step = 0);
    // Bytes that the next instruction touches beside the operands it names. Not `exact`: somewhere in there.
    void also(Role role, Space space, Type type, const Area &area, bool exact = true);
    // A register write on the pipe that owns the register (masks, strides, pad values).
    void set_register(PipeId pipe, uint64_t value);
    // An instruction of the scalar unit itself that takes `milli` thousandths of a cycle.
    void scalar(Instr instr, uint64_t value, int64_t milli, const Access *access = nullptr);
    // The same, reading or writing `bytes` of a memory; 0: an element of the tile it lies in.
    void scalar_access(Instr instr, Space space, uint64_t address, int64_t bytes, int64_t milli,
                       const Access *access = nullptr);
    // What the kernel's own code has executed since the last time.
    void take_code();
    void fetch(const std::array<uint64_t, 4> &pieces);
    // Scalar work of generated address code, without an instruction of its own in the trace.
    void scalar_work(int64_t milli) {
        if (!silent) clock.scalar_work(milli);
    }
    void barrier(PipeId pipe);

    [[noreturn, gnu::format(printf, 2, 3)]] void unsupported(const char *format, ...) const;
    [[noreturn, gnu::format(printf, 2, 3)]] void kernel_error(const char *format, ...) const;

    [[gnu::format(printf, 2, 3)]] void remark(const char *format, ...); // once per line

    // A row for an instruction whose operands are added next.
    Record record(Instr instr, PipeId pipe, Form form) const;
    // The same where it will lie, for one that the clock is given before any other.
    Record &next_record(Instr instr, PipeId pipe, Form form);
    // Adds an operand to the row that was made last; `bytes` is what a plain address stands for.
    void operand(int which, Role role, Space space, Type type, const Area &area, int64_t bytes,
                 bool exact = true);
    void take_further_operands(); // those of `also`
    uint32_t moved_geometry(const Record &r, Type type, int64_t repeat, int64_t bytes);
    uint32_t geometry_of(const Geometry &geometry) {
        return detailed_ ? records_.geometries.index_of(geometry) : 0;
    }

    Journal *journal() const { return records_.journal; }
    uint32_t rows() const { return records_.size(); } // of all cores
    // A tile op begins and ends: instructions between belong to it.
    void begin_call(Op op, const Operands &operands);
    void end_call();
    // True when the op came back as it was, and all that it issues has been issued (core_repeat.cpp).
    bool repeat(Op op, const Operands &operands);
    void keep_issued(); // after an op that was run

    std::vector<Remark> remarks;
    Clock clock;
    const Parameters &parameters;
    const int64_t tile_op_cost;                        // scalar work around one tile op, thousandths
    uint64_t control = 0;                              // the CTRL register
    std::array<uint64_t, kSprCount> spr{~0ull, ~0ull}; // special registers, by Spr
    std::array<uint64_t, 64> va{};                     // VA0..VA7: places in UB of eight blocks each
    uint64_t &spr_of(Spr which) { return spr[static_cast<size_t>(which)]; }
    uint64_t spr_of(Spr which) const { return spr[static_cast<size_t>(which)]; }
    const std::unique_ptr<VectorFunction> function;             // null on chips without vector functions
    bool register_based() const { return function != nullptr; } // a5
    std::unique_ptr<RegisterFunction> registers;                // null until one is used
    uint64_t ffts_base = 0;
    uint8_t atomic_type = 0; // of DMA stores: 0 none, else set_atomic_* + 1
    uint8_t atomic_op = 0;   // 0 add, 1 max, 2 min
    // Of the accumulator of the instruction that is issued next, below the tile ops.
    void use_unit_flag(uint64_t flag) { unit_flag_ = static_cast<uint32_t>(flag); }
    bool atomic_store = false;   // the stores of the running op add to what is there
    bool looks_at_words = false; // loads are of words that cores leave for each other, the library says
    CounterLoop counter_loop;
    std::array<Buffer, kBuffers> buffers;
    uint8_t store_atomic_type = 0, store_atomic_op = 0; // of scalar stores: set_st_atomic_cfg

  private:
    UnitUse unit_of(const Area &area, int64_t bytes);
    void execute_vector(const Operation &operation, Type type, int64_t repeat, int64_t elements,
                        const VectorOperand &dst, const VectorOperand &src0, const VectorOperand &src1,
                        bool counted);
    void issue_vector(Instr instr, Type type, int64_t repeat, int64_t elements, const VectorOperand &dst,
                      const VectorOperand &src0, const VectorOperand &src1, bool counted);

    void begin_record(Record &r, Instr instr, PipeId pipe, Form form) const;
    struct VectorSpec { // what of a vector operand its footprint depends on
        uint32_t piece = 0, distance = 0;
        uint64_t mask = 0;
        uint8_t used = 0, typed = 0, element = 0, unseen = 0, reserved[4] = {};
    };
    struct VectorForm { // an instruction's geometry, and where it is kept
        Geometry geometry;
        VectorSpec spec[3];
        uint32_t site = 0, index = 0, footprint[3] = {}, reserved = 0;
        bool filled = false;
    };
    struct CallTile {
        Space space;
        uint64_t begin, end;
        uint32_t tile;
        int size; // of an element
    };
    struct KnownCall { // a tile op with these tiles and tensors, and what is kept of them
        std::vector<Operand> operands;
        std::vector<CallTile> tiles;
        uint32_t list = 0;
        bool list_is_known = false;
        bool is(const Operands &others) const;
    };
    struct Issued { // an instruction of an op, and how many operand rows it has
        Record record;
        CoreStep step; // `before` as the op has it
        uint32_t operands;
        bool has_access;
    };
    struct Repeated { // a tile op with these operands, and what it issues
        enum State : uint8_t { Seen, Kept, Refused } state = Seen;
        Op op{};
        Site at{};
        uint64_t control = 0;
        uint8_t atomic_type = 0;
        int global = -1; // the operand in global memory, which may lie elsewhere the next time
        std::vector<Operand> operands;
        std::vector<Issued> issued;
        struct Row {
            OperandRow operand;
            bool global;
        };
        std::vector<Row> rows;
        std::vector<Access> accesses;
        int64_t rest = 0; // scalar work behind the last one
        bool is(const Core &core, Op other, const Operands &others) const;
    };
    void issue_again(const Repeated &known, const Operands &operands);
    struct Further {
        Role role;
        Space space;
        Type type;
        bool exact;
        Area area;
    };
    void describe_vector(Record &r, Instr instr, Type type, int64_t repeat, int64_t elements,
                         const VectorOperand *const operands[3], bool counted);
    void gather_areas(Instr instr, Type type, int64_t repeat, int64_t elements,
                      std::array<const VectorOperand *, 3> operands, bool counted, std::vector<Area> &reads,
                      std::vector<Area> &writes) const;
    void know_call(Op op, const Operands &operands, KnownCall &known);
    void check_tile(Op op, const TileRef &tile);
    const CallTile *find_tile(Space space, uint64_t address, bool source) const;
    uint32_t tile_at(Space space, uint64_t address, bool source) const;

    const int64_t register_cost_;
    const uint8_t unwritten_; // what bytes hold that nobody wrote
    const bool detailed_;     // operands are kept
    uint32_t call_ = kNoCall;
    uint32_t unit_flag_ = 0;                  // of the running op's accumulator
    const std::vector<CallTile> *call_tiles_; // of the running op
    const std::vector<CallTile> no_tiles_;
    std::array<KnownCall, 256> known_calls_;
    std::vector<uint32_t> tile_list_;
    std::vector<Further> further_;
    std::array<VectorForm, 256> vector_forms_;
    std::array<Repeated, 256> repeated_;
    Repeated *repeating_ = nullptr; // what the running op issues is kept there
    bool looked_ = false;           // the running op looked at a memory
    uint32_t first_row_ = 0, first_step_ = 0;
    uint32_t pieces_ = 0; // transfers of the running op
    bool in_call_ = false;
    bool past_l2_ = false;              // the running transfer's address says so
    std::array<uint64_t, 4> fetched_{}; // pieces of code that the instruction cache holds
    bool loads_overlap_ =
        false; // the scalar unit's last access was a load from UB, in the block that it is in
    int64_t work_before_ = 0;
    uint64_t placings_ = 0;
    Records &records_;
    GlobalMemory &gm_;
    uint64_t sizes_[static_cast<int>(Space::GM)];
    LocalMemory memory_[static_cast<int>(Space::GM)];
    const Region *last_region_ = nullptr;
    std::vector<uint8_t> register_file_; // empty until it is used
};

// A byte offset, from one or from a host address within that memory of this core.
uint64_t offset_in(Core &core, Space space, uint64_t address);
const char *space_name(Space space);

// The place in a kernel's object, whose debug lines are looked up afterwards; no file: in none of them.
Site site_in_kernel(uint64_t address);

// The core whose thread this is, as the kernel calls us: what its own code did before has been taken.
Core &current_core();
Core *running_core(); // the same, or null on a thread that is no core's

// --- tile ops
// -------------------------------------------------------------------------------------------------

struct Operands {
    const Operand *list;
    uint32_t count;
    const Operand &operator[](uint32_t i) const { return list[i]; }
};
using OpBody = void (*)(Core &core, const Operands &operands);
extern const char *const op_names[];

// Defines what an op does: TILE_OP_BODY(TADD) { … uses core, operands … }
#define TILE_OP_BODY(name)                                                                                   \
    void op_##name([[maybe_unused]] Core &core, [[maybe_unused]] const Operands &operands)
// The same for chips with vector functions, where the op is lowered in another way there.
#define FUNCTION_OP_BODY(name)                                                                               \
    void function_##name([[maybe_unused]] Core &core, [[maybe_unused]] const Operands &operands)
// Runs the lowering of the core's family.
void lower(Core &core, Op op, const Operands &operands);
// Lowerings that one of the other family falls back to.
TILE_OP_BODY(TCI);

} // namespace insight_trace::engine
