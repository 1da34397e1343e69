#include "shares.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "read_table.hpp"

namespace insight_trace::engine {

namespace {

constexpr int32_t kNowhere = -1, kOfPath = 1 << 16; // beside the numbers of kernels

// A place in a kernel's source, without pointers: kernels lie elsewhere in each process.
struct FarSite {
    uint64_t offset; // of the file's name in the kernel's image
    int32_t image;   // kNowhere: no place; from kOfPath on the place is in the image itself
    uint32_t line, instr, pipe;
};

struct Count {
    uint64_t steps, accesses, flags, remarks;
};

bool far_site(const std::vector<KernelImage> &images, Site at, FarSite &far) {
    far = {0, kNowhere, at.line, 0, 0};
    if (!at.file) return true;
    const auto place = reinterpret_cast<uint64_t>(at.file);
    for (size_t i = 0; i < images.size(); ++i) {
        far.image = static_cast<int32_t>(i);
        far.offset = place - images[i].base;
        if (place >= images[i].base && place < images[i].end) return true;
        far.image += kOfPath;
        if (at.file == images[i].path.c_str()) return true;
    }
    return false;
}

Site near_site(const std::vector<KernelImage> &images, const FarSite &far) {
    if (far.image == kNowhere) return {nullptr, far.line};
    const auto image = static_cast<size_t>(far.image % kOfPath);
    if (image >= images.size()) fail(Fault::OurBug, {}, "a share of the blocks names kernel %zu", image);
    if (far.image >= kOfPath) return {images[image].path.c_str(), far.line};
    return {reinterpret_cast<const char *>(images[image].base + far.offset), far.line};
}

std::string rest_of(const std::string &path) { return path + ".rest"; }
std::string printed_of(const std::string &path) { return path + ".printed"; }

class Writer {
  public:
    explicit Writer(const std::string &path) : file_(fdopen(created_file(path), "w")) {}
    template <class Row> void put(const Row *rows, size_t count) {
        const size_t bytes = count * sizeof(Row);
        whole_ = whole_ && (!bytes || fwrite(rows, bytes, 1, file_) == 1);
        const char nothing[8] = {};
        if (bytes % 8) whole_ = whole_ && fwrite(nothing, 8 - bytes % 8, 1, file_) == 1;
    }
    template <class Row> void put(const Row &row) { put(&row, 1); }
    bool finish() { return fclose(file_) == 0 && whole_; }

  private:
    FILE *file_;
    bool whole_ = true;
};

class Reader {
  public:
    explicit Reader(const std::string &path) : bytes_(path) {}
    template <class Row> const Row *rows(uint64_t count) {
        const uint64_t left = bytes_.size() - at_;
        if (count > left / sizeof(Row)) fail(Fault::OurBug, {}, "a share of the blocks is cut off");
        const auto *found = reinterpret_cast<const Row *>(bytes_.begin() + at_);
        at_ += std::min<uint64_t>(left, (count * sizeof(Row) + 7) / 8 * 8);
        return found;
    }
    template <class Row> const Row &row() { return *rows<Row>(1); }

  private:
    ReadTable<uint8_t> bytes_;
    uint64_t at_ = 0;
};

// What the kernels of a share print comes behind what those before it printed.
void print_into(const std::string &path) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0) _exit(1);
    close(file);
}

void print_again(const std::string &path) {
    const ReadTable<char> text(path);
    if (text.size()) fwrite(text.begin(), 1, text.size(), stdout);
}

} // namespace

Shares::Shares(Job &job) {
    std::vector<size_t> begins; // of blocks
    for (size_t i = 0; i < job.cores.size(); ++i)
        if (!i || job.cores[i].identity.block != job.cores[i - 1].identity.block) begins.push_back(i);
    const size_t count = std::max<size_t>(1, std::min(job.shares, begins.size()));
    for (size_t i = 0; i < count; ++i) {
        const size_t first = begins[begins.size() * i / count], last = begins.size() * (i + 1) / count;
        shares_.push_back({first, last < begins.size() ? begins[last] : job.cores.size(), job.records_path, 0,
                           std::make_unique<TouchedLines>(job.gm_base, job.gm_size)});
        if (i) shares_[i].path += ".share" + std::to_string(i);
    }
    const pid_t first = getpid();
    for (size_t i = 1; i < count && !number_; ++i) {
        shares_[i].process = fork();
        if (shares_[i].process < 0)
            fail(Fault::Environment, {}, "no process for a share of the blocks: %s", strerror(errno));
        if (!shares_[i].process) number_ = i;
    }
    const Share &mine = shares_[number_];
    job.first_core = mine.first;
    job.end_core = mine.end;
    job.records_path = mine.path;
    job.touched = mine.touched.get();
    if (!number_) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first) _exit(1);
    print_into(printed_of(mine.path));
}

void Shares::keep_data(const Job &job) {
    for (const KernelImage &image : job.kernels) data_.push_back(image.data_hash());
}

// A variable that all blocks have in common is another way to talk.
bool Shares::kept_data(const Job &job) const {
    for (size_t i = 0; i < data_.size(); ++i)
        if (job.kernels[i].data_hash() != data_[i]) return false;
    return true;
}

bool Shares::leave(const Job &job, Machine &machine, Records &records) const {
    if (!kept_data(job)) return false;
    const Share &mine = shares_[number_];
    records.close();
    Writer out(rest_of(mine.path));
    FarSite far;
    out.put(static_cast<uint64_t>(records.sites().size()));
    for (const SiteRow &site : records.sites()) {
        if (!far_site(job.kernels, {site.file, site.line}, far)) return false;
        far.instr = static_cast<uint32_t>(site.instr);
        far.pipe = static_cast<uint32_t>(site.pipe);
        out.put(far);
    }
    out.put(static_cast<uint64_t>(machine.meetings().size()));
    for (const Meeting &meeting : machine.meetings()) {
        const int64_t head[] = {meeting.latency, static_cast<int64_t>(meeting.rows.size())};
        out.put(head, 2);
        out.put(meeting.rows.data(), meeting.rows.size());
    }
    for (size_t i = mine.first; i < mine.end; ++i) {
        const Core &core = machine.core(i);
        const CoreSteps &steps = core.clock.steps();
        const std::vector<Clock::LeftOver> flags = core.clock.unused_flags();
        out.put(Count{steps.list.size(), steps.accesses.size(), flags.size(), core.remarks.size()});
        if (steps.list.size()) out.put(&steps.list[0], steps.list.size());
        if (steps.accesses.size()) out.put(&steps.accesses[0], steps.accesses.size());
        out.put(flags.data(), flags.size());
        for (const Remark &remark : core.remarks) {
            if (!far_site(job.kernels, remark.at, far)) return false;
            out.put(far);
            out.put(static_cast<uint64_t>(remark.text.size()));
            out.put(remark.text.data(), remark.text.size());
        }
    }
    return out.finish() && fflush(nullptr) == 0;
}

bool Shares::take_over(const Job &job, Machine &machine, Records &records) {
    if (!kept_data(job)) return false;
    for (size_t number = 1; number < shares_.size(); ++number) {
        const Share &other = shares_[number];
        int status = 0;
        while (waitpid(other.process, &status, 0) < 0)
            if (errno != EINTR) return false;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return false;
        for (size_t earlier = 0; earlier < number; ++earlier)
            if (shares_[earlier].touched->meets(*other.touched)) return false;
        Reader in(rest_of(other.path));
        const uint32_t row = records.size();
        std::vector<uint32_t> sites(in.row<uint64_t>());
        for (uint32_t &site : sites) {
            const FarSite &far = in.row<FarSite>();
            site = records.site(near_site(job.kernels, far), static_cast<Instr>(far.instr),
                                static_cast<PipeId>(far.pipe));
        }
        records.take_over(other.path, sites);
        const auto meeting = static_cast<uint32_t>(machine.meetings().size());
        for (uint64_t left = in.row<uint64_t>(); left; --left) {
            const int64_t *head = in.rows<int64_t>(2);
            const uint32_t *rows = in.rows<uint32_t>(static_cast<uint64_t>(head[1]));
            Meeting one{{rows, rows + head[1]}, head[0]};
            for (uint32_t &signal : one.rows) signal += row;
            machine.take_over(std::move(one));
        }
        for (size_t i = other.first; i < other.end; ++i) {
            Core &core = machine.core(i);
            const Count count = in.row<Count>();
            core.clock.take_over(in.rows<CoreStep>(count.steps), count.steps, row, meeting);
            core.clock.take_over(in.rows<Access>(count.accesses), count.accesses);
            const Clock::LeftOver *flags = in.rows<Clock::LeftOver>(count.flags);
            for (uint64_t f = 0; f < count.flags; ++f) {
                Clock::LeftOver flag = flags[f];
                flag.row += row;
                core.clock.take_over(flag);
            }
            for (uint64_t left = count.remarks; left; --left) {
                const Site at = near_site(job.kernels, in.row<FarSite>());
                const uint64_t size = in.row<uint64_t>();
                core.remarks.push_back({at, {in.rows<char>(size), size}});
            }
        }
        print_again(printed_of(other.path));
        for (const char *table : {"", ".operands", ".calls", ".geometries", ".footprints", ".tiles", ".lists",
                                  ".rest", ".printed"})
            unlink((other.path + table).c_str());
    }
    return true;
}

} // namespace insight_trace::engine
