// A run that cannot go on says whose fault it is, what happened and where.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "insight_trace/abi.hpp"

namespace insight_trace::engine {

enum class Fault { Kernel, Input, Environment, NotSupported, OurBug };

// What went wrong first on this thread: a failure that leaves a kernel runs the destructors of its objects,
// and one that fails in turn ends the process before anybody caught the first.
struct FirstFailure {
    Fault fault = Fault::Kernel;
    Site at{};
    char what[400] = "";
};
inline thread_local FirstFailure t_first_failure;

struct Failure : std::runtime_error {
    Fault fault;
    Site at;
    Failure(Fault fault_, Site at_, const std::string &what)
        : std::runtime_error(what), fault(fault_), at(at_) {
        if (std::uncaught_exceptions()) return;
        t_first_failure.fault = fault;
        t_first_failure.at = at;
        snprintf(t_first_failure.what, sizeof t_first_failure.what, "%s", what.c_str());
    }
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
