// A run that cannot go on says whose fault it is, what happened and where.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

enum class Fault { Kernel, Input, Environment, NotSupported, OurBug };

struct Failure : std::runtime_error {
    Fault fault;
    Site at;
    Failure(Fault fault_, Site at_, const std::string &what)
        : std::runtime_error(what), fault(fault_), at(at_) {}
};

[[noreturn, gnu::format(printf, 3, 4)]] inline void fail(Fault fault, Site at, const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    throw Failure(fault, at, text);
}

} // namespace insight_trace::engine
