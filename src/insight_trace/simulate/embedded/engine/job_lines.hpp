// The lines of a job, one fact each (text.hpp), as simulator.py writes them.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "machine.hpp"
#include "mapped.hpp"
#include "op_script.hpp"
#include "sandbox.hpp"
#include "text.hpp"
#include "timings.hpp"
#include "variants.hpp"

namespace insight_trace::engine {

[[noreturn]] inline void bad_job(int number, const std::string &line) {
    fail(Fault::OurBug, {}, "job line %d cannot be read: %s", number, line.c_str());
}

// Fills all of them from the lines of a job; Failure where one cannot be read.
inline void read_job(std::istream &in, Job &job, Sandbox &sandbox, Variants &variants, Timings &timings) {
    std::string line;
    int number = 0;
    while (std::getline(in, line)) {
        ++number;
        std::vector<std::string> f = fields_of(line);
        if (f.empty() || read_parameter(f, job.parameters) || read_sandbox(f, sandbox)) continue;
        auto n = [&](size_t i) {
            return f.size() > i ? std::stoull(f[i], nullptr, 0) : (bad_job(number, line), 0ull);
        };
        const std::string &key = f[0];
        if (key == "records")
            job.records_path = f.at(1);
        else if (key == "result")
            job.result_path = f.at(1);
        else if (key == "gm") {
            job.gm_path = f.at(1);
            job.gm_base = n(2);
            job.gm_size = n(3);
        } else if (key == "region")
            (timings.groups.empty() ? job.regions : timings.groups.back().regions)
                .push_back({n(1), n(2), n(3), f.at(4), n(5), n(6) != 0});
        else if (key == "seconds")
            job.limit_seconds = std::stod(f.at(1));
        else if (key == "bytes")
            job.limit_bytes = n(1);
        else if (key == "table_room")
            MappedBytes::room = n(1);
        else if (key == "shares")
            job.shares = n(1);
        else if (key == "timing_only")
            job.timing_only = n(1) != 0;
        else if (key == "warm")
            job.warm = n(1) != 0;
        else if (key == "held")
            job.held.push_back({n(1), n(2), n(3) != 0});
        else if (key == "check")
            job.check = n(1) != 0;
        else if (key == "numbers")
            job.numbers = n(1) != 0;
        else if (key == "unwritten")
            job.unwritten = static_cast<uint8_t>(n(1));
        else if (key == "leave_out")
            job.left_out.emplace(f.at(1), static_cast<uint32_t>(n(2)));
        else if (key == "journal")
            job.journal.path = f.at(1);
        else if (key == "journal_first")
            job.journal.first = static_cast<uint32_t>(n(1));
        else if (key == "journal_bytes")
            job.journal.bytes = n(1);
        else if (key == "observe")
            job.journal.observed.insert(static_cast<uint32_t>(n(1)));
        else if (key == "change") {
            Change change{static_cast<uint32_t>(n(1)), static_cast<uint32_t>(n(2)), {}, std::stoll(f.at(4))};
            if (!find_field(f.at(3), change.field)) bad_job(number, line);
            (variants.changes.empty() ? job.changes : variants.changes.back()).push_back(change);
        } else if (key == "variants") {
            variants.path = f.at(1);
            variants.seconds = std::stod(f.at(2));
            variants.at_once = n(3);
        } else if (key == "kept")
            variants.kept.push_back({n(1), n(2)});
        else if (key == "variant") // changes from here on are its own
            variants.changes.emplace_back();
        else if (key == "timings") {
            timings.rows_path = f.at(1);
            timings.images_path = f.at(2);
            timings.bytes_path = f.at(3);
            timings.at_once = n(4);
            timings.seconds = std::stod(f.at(5));
            job.gm_base = n(6);
        } else if (key == "group") // regions and cores from here on are its own
            timings.groups.push_back({n(1), n(2), n(3), n(4), n(5), {}, {}});
        else if (key == "perturb")
            job.perturb = n(1);
        else if (key == "kernel") {
            KernelImage image;
            image.path = f.at(1);
            image.entry = f.at(2);
            if (image.path == "builtin:op_script") image.call = run_op_script;
            job.kernels.push_back(image);
        } else if (key == "core") {
            CoreJob core;
            core.kernel = static_cast<int>(n(1));
            auto &cores = timings.groups.empty() ? job.cores : timings.groups.back().cores;
            core.identity.index = static_cast<uint16_t>(cores.size());
            core.identity.cube = f.at(2) == "aic";
            core.identity.block = static_cast<int32_t>(n(3));
            core.identity.block_count = static_cast<int32_t>(n(4));
            core.identity.sub_block = static_cast<int32_t>(n(5));
            core.args = n(6);
            core.identity.name = f.at(7);
            if (core.kernel < 0 || core.kernel >= static_cast<int>(job.kernels.size())) bad_job(number, line);
            cores.push_back(core);
        } else
            bad_job(number, line);
    }
}

} // namespace insight_trace::engine
