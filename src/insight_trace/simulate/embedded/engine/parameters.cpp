#include "parameters.hpp"

#include "failure.hpp"

namespace insight_trace::engine {

struct Row {
    const char *name;
    int64_t Parameters::*member;
};

static const Row kRows[kParameterCount] = {
#define PARAMETER(group, name) {#group "." #name, &Parameters::group##_##name},
#include "parameters.def"
#undef PARAMETER
};

void Parameters::set(const std::string &name, int64_t thousandths) {
    for (size_t i = 0; i < kParameterCount; ++i)
        if (name == kRows[i].name) {
            this->*kRows[i].member = thousandths;
            given[i] = true;
            return;
        }
    fail(Fault::OurBug, {}, "there is no parameter %s", name.c_str());
}

void Parameters::settle() const {
    for (size_t i = 0; i < kParameterCount; ++i)
        if (!given[i]) fail(Fault::OurBug, {}, "the job lacks the parameter %s", kRows[i].name);
}

void Parameters::missing(Instr instr) {
    fail(Fault::NotSupported, {}, "the chip's file has no timing for %s", instr_name(instr));
}

} // namespace insight_trace::engine
