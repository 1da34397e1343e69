#include "job.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/time.h>

#include "text.hpp"

namespace insight_trace::capture {

using engine::fail;
using engine::Fault;

int Job::kernel_row(int32_t func_id) const {
    for (size_t i = 0; i < kernels.size(); ++i)
        if (kernels[i].func_id == func_id) return static_cast<int>(i);
    return -1;
}

static ChipTensor read_tensor(const std::vector<std::string> &f) {
    uint32_t shapes[MAX_TENSOR_DIMS] = {}, strides[MAX_TENSOR_DIMS] = {};
    uint32_t ndims = static_cast<uint32_t>((f.size() - 5) / 2);
    for (uint32_t d = 0; d < ndims; ++d) {
        shapes[d] = static_cast<uint32_t>(std::stoul(f.at(5 + d)));
        strides[d] = static_cast<uint32_t>(std::stoul(f.at(5 + ndims + d)));
    }
    auto *address = reinterpret_cast<void *>(std::stoull(f.at(1)));
    ChipTensor tensor =
        make_tensor_strided(address, shapes, strides, ndims, static_cast<DataType>(std::stoi(f.at(4))));
    tensor.buffer.size = std::stoull(f.at(2));
    return tensor;
}

void read_job(const std::string &path, Job &job) {
    std::ifstream in(path);
    if (!in) fail(Fault::Environment, {}, "cannot read the job %s", path.c_str());
    std::string line;
    while (std::getline(in, line)) {
        std::vector<std::string> f = engine::fields_of(line);
        if (f.empty() || engine::read_parameter(f, job.machine.parameters) ||
            engine::read_sandbox(f, job.sandbox))
            continue;
        const std::string &key = f[0];
        if (key == "orchestration") {
            job.orchestration = f.at(1);
            job.function = f.at(2);
            job.config = f.size() > 3 ? f[3] : "";
        } else if (key == "channel")
            job.channel = std::stoi(f.at(1));
        else if (key == "records")
            job.records_path = f.at(1);
        else if (key == "payload")
            job.payload_path = f.at(1);
        else if (key == "recover")
            job.recover.assign(f.begin() + 1, f.end());
        else if (key == "result")
            job.result_path = f.at(1);
        else if (key == "arena") {
            job.arena = std::stoi(f.at(1));
            job.base = std::stoull(f.at(2));
            job.heap = std::stoull(f.at(3));
            job.end = std::stoull(f.at(4));
        } else if (key == "level")
            job.level = std::stoi(f.at(1));
        else if (key == "graph")
            job.graph_path = f.at(1);
        else if (key == "hollow")
            job.hollow = f.at(1) == "1";
        else if (key == "picked")
            job.picked.insert(static_cast<uint32_t>(std::stoul(f.at(1))));
        else if (key == "picked_kernel")
            job.picked_kernels.insert(std::stoi(f.at(1)));
        else if (key == "picked_task")
            job.picked_task = std::stoull(f.at(1));
        else if (key == "most_payload")
            job.most_payload = std::stoull(f.at(1));
        else if (key == "margin")
            job.margin = std::stoull(f.at(1));
        else if (key == "workers")
            job.workers = std::stoi(f.at(1));
        else if (key == "shuffle")
            job.shuffle = std::stoull(f.at(1));
        else if (key == "seconds")
            job.seconds = std::stod(f.at(1));
        else if (key == "rings")
            job.rings = f.at(1) == "1";
        else if (key == "clusters")
            job.clusters = std::stoi(f.at(1));
        else if (key == "tensor") {
            job.tensors.push_back(read_tensor(f));
            job.tensor_names.push_back(f.at(3));
        } else if (key == "window")
            job.windows.push_back({std::stoull(f.at(1)), std::stoull(f.at(2)), f.at(3)});
        else if (key == "node") {
            job.node = std::stoull(f.at(1));
            job.chip = std::stoi(f.at(2));
        } else if (key == "scalar")
            job.scalars.push_back(std::stoull(f.at(1)));
        else if (key == "kernel") {
            job.kernels.push_back({std::stoi(f.at(1)), f.at(2) == "aic", f.size() > 5 ? f[5] : ""});
            engine::KernelImage image;
            image.path = f.at(3);
            image.entry = f.at(4);
            job.machine.kernels.push_back(image);
        } else
            fail(Fault::OurBug, {}, "the job line cannot be read: %s", line.c_str());
    }
    job.machine.limit_seconds = job.seconds;
    job.machine.parameters.settle();
}

void map_arena(const Job &job) {
    void *wanted = reinterpret_cast<void *>(job.base);
    void *mapped = mmap(wanted, job.end - job.base, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, job.arena, 0);
    if (mapped != wanted) fail(Fault::Environment, {}, "cannot map global memory: %s", strerror(errno));
}

void Failure::set(engine::Fault fault_, const char *text, const char *file_, int line_) {
    if (failed) return;
    failed = true;
    fault = static_cast<int>(fault_);
    snprintf(message, sizeof message, "%s", text);
    snprintf(file, sizeof file, "%s", file_ ? file_ : "");
    line = line_;
}

std::string failure_lines(const Failure &failure) {
    std::ostringstream out;
    out << "fault\t" << engine::fault_name(static_cast<Fault>(failure.fault)) << "\nmessage\t"
        << engine::escaped(failure.message) << "\n";
    if (failure.file[0]) out << "at\t" << engine::escaped(failure.file) << "\t" << failure.line << "\n";
    if (failure.signal) out << "signal\t" << failure.signal << "\n";
    if (failure.limit[0]) out << "limit\t" << failure.limit << "\n";
    if (failure.image[0]) out << "pc\t" << engine::escaped(failure.image) << "\t" << failure.offset << "\n";
    return out.str();
}

void alarm_after(double seconds) {
    itimerval timer{};
    timer.it_value.tv_sec = static_cast<time_t>(seconds);
    timer.it_value.tv_usec =
        static_cast<suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
    setitimer(ITIMER_REAL, &timer, nullptr);
}

} // namespace insight_trace::capture
