// The checker's answer as lines of the runner's result.
#pragma once

#include <string>

#include "../machine.hpp"

namespace insight_trace::engine::check {

// `found` lines for what is wrong, `redundant` lines for synchronisation that orders nothing.
std::string report_of(const Records &records, const Machine &machine);

} // namespace insight_trace::engine::check
