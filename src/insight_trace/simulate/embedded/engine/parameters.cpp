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

size_t Parameters::queue_depth(PipeId pipe, bool cube) const {
    auto milli = [&] {
        switch (pipe) {
        case PipeId::V:
            return queue_v;
        case PipeId::M:
            return queue_m;
        case PipeId::MTE1:
            return queue_mte1;
        case PipeId::MTE2:
            return cube ? queue_mte2_cube : queue_mte2;
        case PipeId::MTE3:
            return cube ? queue_mte3_cube : queue_mte3;
        case PipeId::FIX:
            return queue_fix;
        default: // the scalar unit issues to itself
            return int64_t(0);
        }
    }();
    return milli < 1000 ? 1 : static_cast<size_t>(milli / 1000);
}

void Parameters::settle() const {
    for (size_t i = 0; i < kParameterCount; ++i)
        if (!given[i]) fail(Fault::OurBug, {}, "the job lacks the parameter %s", kRows[i].name);
}

void Parameters::missing(Instr instr) {
    fail(Fault::NotSupported, {}, "the chip's file has no timing for %s", instr_name(instr));
}

} // namespace insight_trace::engine
