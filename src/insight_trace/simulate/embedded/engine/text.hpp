// Jobs and results are text: one line per fact, fields separated by tabs; backslash, tab and newline are
// escaped in each field.
#pragma once

#include <string>
#include <vector>

#include "failure.hpp"
#include "parameters.hpp"

namespace insight_trace::engine {

std::string escaped(const std::string &text);
std::vector<std::string> fields_of(const std::string &line);
const char *fault_name(Fault fault);

// Takes a line that describes the chip (value, vector, move); false: it is another line.
bool read_parameter(const std::vector<std::string> &fields, Parameters &into);

// Writes `text` and a last line by which a reader knows that nothing is missing. Whole or absent.
void write_result_file(const std::string &path, const std::string &text);

} // namespace insight_trace::engine
