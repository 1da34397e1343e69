// Timing parameters of one chip, as the job names them (chips/*.toml is where they come from).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

enum class Instr : uint16_t {
#define INSTR(name, ...) name,
#include "instructions.def"
#undef INSTR
    COUNT
};

constexpr int kInstrCount = static_cast<int>(Instr::COUNT);
constexpr int kTypeCount = 19;
constexpr int kParameterCount = 0
#define PARAMETER(group, name) +1
#include "parameters.def"
#undef PARAMETER
    ;

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
    bool given = false;
};

struct CurvePoint {
    int64_t bytes, milli;
};

// latency + bytes / rate, or a curve of measured sizes; times in thousandths of a cycle.
struct MoveCost {
    int64_t latency = 0;
    int64_t rate = 0;         // bytes per 1000 cycles
    int64_t per_burst = 0;    // at least this much per burst or row
    int64_t missed_burst = 0; // the same of one that L2 does not hold; 0: no more
    // until the pipe takes the next transfer; 0: when this one has ended. On chip: extra gap
    int64_t interval = 0;
    int64_t floor = 0;      // what it takes at least
    int64_t in_flight = 0;  // transfers that the pipe has under way at most; 0: no limit of its own
    int64_t burst_rate = 0; // bytes per 1000 cycles inside one burst; 0: no limit of its own
    int points = 0;
    CurvePoint curve[12];
    bool given = false;
};

struct Parameters {
#define PARAMETER(group, name) int64_t group##_##name = 0;
#include "parameters.def"
#undef PARAMETER

    // Whether the job said so: nothing about a chip has a default here.
    std::array<bool, kParameterCount> given{};

    const VectorCost &vector(Instr instr, Type type) const {
        const VectorCost &cost = vectors[static_cast<size_t>(instr)][static_cast<size_t>(type)];
        if (!cost.given) missing(instr);
        return cost;
    }
    const MoveCost &move(Instr instr) const {
        const MoveCost &cost = moves[static_cast<size_t>(instr)];
        if (!cost.given) missing(instr);
        return cost;
    }

    // How many instructions the queue of a pipe holds.
    size_t queue_depth(PipeId pipe, bool cube) const;

    void set(const std::string &name, int64_t thousandths);
    // Refuses a job that lacks a parameter.
    void settle() const;

    std::array<std::array<VectorCost, kTypeCount>, kInstrCount> vectors{};
    std::array<MoveCost, kInstrCount> moves{};

  private:
    [[noreturn]] static void missing(Instr instr);
};

} // namespace insight_trace::engine
