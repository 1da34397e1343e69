#include "job.hpp"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <link.h>
#include <sstream>
#include <sys/mman.h>

namespace insight_trace::capture {

using engine::fail;
using engine::Fault;

int Job::kernel_row(int32_t func_id) const {
    for (size_t i = 0; i < kernels.size(); ++i)
        if (kernels[i].func_id == func_id) return static_cast<int>(i);
    return -1;
}

std::string escaped(const std::string &text) {
    std::string out;
    for (char c : text) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\t')
            out += "\\t";
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

static std::string unescaped(const std::string &text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size())
            out += text[i];
        else if (text[++i] == 't')
            out += '\t';
        else if (text[i] == 'n')
            out += '\n';
        else
            out += text[i];
    }
    return out;
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

Job read_job(const std::string &path) {
    std::ifstream in(path);
    if (!in) fail(Fault::Environment, {}, "cannot read the job %s", path.c_str());
    Job job;
    std::string line;
    while (std::getline(in, line)) {
        std::vector<std::string> f;
        std::stringstream fields(line);
        for (std::string field; std::getline(fields, field, '\t');) f.push_back(unescaped(field));
        if (f.empty()) continue;
        const std::string &key = f[0];
        if (key == "value") // what the chip has; how long things take is not recorded here
            job.machine.parameters.value[f.at(1)] = std::stoll(f.at(2));
        else if (key == "orchestration") {
            job.orchestration = f.at(1);
            job.function = f.at(2);
            job.config = f.size() > 3 ? f[3] : "";
        } else if (key == "channel")
            job.channel = std::stoi(f.at(1));
        else if (key == "records")
            job.records_path = f.at(1);
        else if (key == "payload")
            job.payload_path = f.at(1);
        else if (key == "result")
            job.result_path = f.at(1);
        else if (key == "arena") {
            job.arena = std::stoi(f.at(1));
            job.base = std::stoull(f.at(2));
            job.heap = std::stoull(f.at(3));
            job.end = std::stoull(f.at(4));
        } else if (key == "level")
            job.level = std::stoi(f.at(1));
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
    return job;
}

void map_arena(const Job &job) {
    void *wanted = reinterpret_cast<void *>(job.base);
    void *mapped = mmap(wanted, job.end - job.base, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, job.arena, 0);
    if (mapped != wanted) fail(Fault::Environment, {}, "cannot map global memory: %s", strerror(errno));
}

static int find_bounds(dl_phdr_info *info, size_t, void *data) {
    auto *image = static_cast<engine::KernelImage *>(data);
    if (image->path != info->dlpi_name) return 0;
    image->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &header = info->dlpi_phdr[i];
        if (header.p_type == PT_LOAD)
            image->end = std::max<uint64_t>(image->end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
    }
    return 1;
}

void load_kernels(Job &job) {
    for (engine::KernelImage &image : job.machine.kernels) {
        void *handle = dlopen(image.path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) fail(Fault::Kernel, {}, "cannot load the compiled kernel: %s", dlerror());
        image.call = reinterpret_cast<void (*)(int64_t *)>(dlsym(handle, image.entry.c_str()));
        if (!image.call) fail(Fault::Input, {}, "the kernel has no function %s", image.entry.c_str());
        dl_iterate_phdr(find_bounds, &image);
        auto *begin = static_cast<uint8_t *>(dlsym(handle, "insight_trace_state_begin"));
        auto *end = static_cast<uint8_t *>(dlsym(handle, "insight_trace_state_end"));
        if (!begin || !end) continue;
        uint8_t *from = *reinterpret_cast<uint8_t **>(begin), *to = *reinterpret_cast<uint8_t **>(end);
        image.state = from;
        image.state_size = static_cast<uint64_t>(to - from);
        image.initial_state.assign(from, to);
    }
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
    static const char *names[] = {"kernel", "input", "environment", "not_supported", "our_bug"};
    std::ostringstream out;
    out << "fault\t" << names[failure.fault] << "\nmessage\t" << escaped(failure.message) << "\n";
    if (failure.file[0]) out << "at\t" << escaped(failure.file) << "\t" << failure.line << "\n";
    if (failure.signal) out << "signal\t" << failure.signal << "\n";
    if (failure.limit[0]) out << "limit\t" << failure.limit << "\n";
    if (failure.image[0]) out << "pc\t" << escaped(failure.image) << "\t" << failure.offset << "\n";
    return out.str();
}

void write_result(const Job &job, const std::vector<std::string> &lines) {
    std::string beside = job.result_path + ".part";
    std::ofstream file(beside, std::ios::binary);
    for (const std::string &line : lines) file << line << (line.empty() || line.back() != '\n' ? "\n" : "");
    file << "end\n";
    file.close();
    if (file) rename(beside.c_str(), job.result_path.c_str());
}

} // namespace insight_trace::capture
