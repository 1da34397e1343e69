// Timing parameters of one chip, as the job names them (soc/*.toml is where they come from).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

enum class Instr : uint16_t {
#define INSTR(name, pipe) name,
#include "instructions.def"
#undef INSTR
    COUNT
};

constexpr int kInstrCount = static_cast<int>(Instr::COUNT);
constexpr int kTypeCount = 19;

const char *instr_name(Instr instr);
PipeId instr_pipe(Instr instr); // PipeId::COUNT for ANY
bool find_instr(const std::string &name, Instr &found);

// head + slope × repeats, in thousandths of a cycle so that time stays an integer.
struct VectorCost {
    int32_t head = 0;  // from start to the first result, and the drain
    int32_t slope = 0; // per repeat of 256 bytes
    int32_t gap = 0;   // extra cycles before the next instruction may start
    // of a vector function that goes row by row (vector_function.hpp)
    int32_t nested_slope = 0, nested_row = 0, nested_head = 0;
};

struct CurvePoint {
    int64_t bytes, milli;
};

// latency + bytes / rate, or a curve of measured sizes; times in thousandths of a cycle.
struct MoveCost {
    int64_t latency = 0;
    int64_t rate = 1000;   // bytes per 1000 cycles
    int64_t per_burst = 0; // at least this much per burst or row
    int64_t interval =
        0; // until the pipe takes the next transfer; 0: when this one has ended. On chip: extra gap
    int64_t floor = 0;      // what it takes at least
    int64_t burst_rate = 0; // bytes per 1000 cycles inside one burst; 0: no limit of its own
    int points = 0;
    CurvePoint curve[12];
};

struct Parameters {
    std::array<std::array<VectorCost, kTypeCount>, kInstrCount> vector{};
    std::array<MoveCost, kInstrCount> move{};
    std::unordered_map<std::string, int64_t> value; // thousandths by name

    int64_t get(const char *name, int64_t otherwise) const {
        auto found = value.find(name);
        return found == value.end() ? otherwise : found->second;
    }

    // Those that are asked for with every instruction, taken out of the map once.
    int64_t bank_turn = 1000, bank_read_write = 0, mask_dispatch = 0;
    int64_t gm_share = 0; // bytes per 1000 cycles that one of the active cores gets; 0: no limit
    int64_t unaligned_cost = 1000, unaligned_from = 0;
    int64_t mmad_head = 0, mmad_gap = 0, mmad_f32 = 1000;
    int64_t fixpipe_head = 0, fixpipe_row = 0, fixpipe_rate = 1000, fixpipe_pass = 0;

    void settle(int64_t active_cores) {
        bank_turn = get("bank.turn", 1000);
        bank_read_write = get("bank.read_write", 0);
        mask_dispatch = get("mask.dispatch", 0);
        int64_t chip = get("gm.chip_rate", 0);
        gm_share = chip ? chip / (active_cores > 0 ? active_cores : 1) : 0;
        unaligned_cost = get("gm.unaligned_cost", 1000);
        unaligned_from = get("gm.unaligned_from", 0) / 1000;
        mmad_head = get("mmad.head", 0);
        mmad_gap = get("mmad.gap", 0);
        mmad_f32 = get("mmad.passes_f32", 1000);
        fixpipe_head = get("fixpipe.head", 0);
        fixpipe_row = get("fixpipe.row", 0);
        fixpipe_rate = get("fixpipe.rate", 1000);
        fixpipe_pass = get("fixpipe.pass", 0);
    }
};

} // namespace insight_trace::engine
