#include "timing.hpp"

#include <algorithm>

#include "elements.hpp"

namespace insight_trace::engine {

static int64_t cycles(int64_t milli) { return (milli + 999) / 1000; }

Cost vector_cost(const Parameters &parameters, Instr instr, Type type, int repeat, const VectorOperand &,
                 const VectorOperand &, const VectorOperand &, Conflicts &) {
    const VectorCost &cost = parameters.vector[static_cast<int>(instr)][static_cast<int>(type)];
    int64_t body = int64_t(cost.slope) * repeat;
    return {std::max<int64_t>(1, cycles(body + cost.gap)), std::max<int64_t>(1, cycles(body + cost.head)), 0,
            Stall::None};
}

static Cost moved(const MoveCost &cost, int64_t bursts, int64_t bytes) {
    int64_t data = bytes * 1000000 / std::max<int64_t>(1, cost.rate) + cost.per_burst * bursts;
    int64_t latency = std::max(cost.latency + data, cost.floor);
    return {std::max<int64_t>(1, cycles(cost.interval)), std::max<int64_t>(1, cycles(latency)),
            std::max<int64_t>(1, cycles(data)), Stall::None};
}

Cost transfer_cost(const Parameters &parameters, Instr instr, uint64_t, int64_t bursts, int64_t burst_bytes,
                   int64_t) {
    return moved(parameters.move[static_cast<int>(instr)], bursts, bursts * burst_bytes);
}

Cost move_cost(const Parameters &parameters, Instr instr, int64_t repeat, int64_t bytes) {
    Cost cost = moved(parameters.move[static_cast<int>(instr)], repeat, bytes);
    cost.occupy = cost.latency; // on-chip moves follow each other
    cost.channel = 0;
    return cost;
}

Cost multiply_cost(const Parameters &parameters, Type type, int64_t m, int64_t k, int64_t n) {
    int64_t k_box = 32 / type_size(type);
    int64_t fractals = ((m + 15) / 16) * ((k + k_box - 1) / k_box) * ((n + 15) / 16);
    int64_t passes = type == Type::F32 ? parameters.get("mmad.passes_f32", 2000) : 1000;
    int64_t body = fractals * passes;
    return {std::max<int64_t>(1, cycles(body + parameters.get("mmad.gap", 0))),
            cycles(body + parameters.get("mmad.head", 21000)), 0, Stall::None};
}

Cost fixpipe_cost(const Parameters &parameters, Instr instr, int64_t rows, int64_t, int64_t bytes) {
    Cost cost = moved(parameters.move[static_cast<int>(instr)], rows, bytes);
    cost.occupy = cost.latency;
    cost.channel = 0;
    return cost;
}

} // namespace insight_trace::engine
