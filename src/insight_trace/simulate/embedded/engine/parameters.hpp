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
};

// latency + bytes / rate, in thousandths.
struct MoveCost {
    int64_t latency = 0;   // milli-cycles
    int64_t rate = 1000;   // bytes per 1000 cycles
    int64_t per_burst = 0; // milli-cycles per burst
    int64_t interval = 0;  // milli-cycles before the pipe can take the next one
    int64_t floor = 0;     // milli-cycles that it takes at least
};

struct Parameters {
    std::array<std::array<VectorCost, kTypeCount>, kInstrCount> vector{};
    std::array<MoveCost, kInstrCount> move{};
    std::unordered_map<std::string, int64_t> value; // milli-units by name

    int64_t get(const char *name, int64_t otherwise) const {
        auto found = value.find(name);
        return found == value.end() ? otherwise : found->second;
    }
};

} // namespace insight_trace::engine
