#include "shares.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "left_records.hpp"

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
    explicit Reader(const std::string &path) : bytes_(std::make_shared<ReadTable<uint8_t>>(path)) {}
    // What was read stays as long as somebody has this.
    std::shared_ptr<ReadTable<uint8_t>> bytes() const { return bytes_; }
    template <class Row> Row *rows(uint64_t count) {
        const uint64_t left = bytes_->size() - at_;
        if (count > left / sizeof(Row)) fail(Fault::OurBug, {}, "a share of the blocks is cut off");
        auto *found = reinterpret_cast<Row *>(bytes_->begin() + at_);
        at_ += std::min<uint64_t>(left, (count * sizeof(Row) + 7) / 8 * 8);
        return found;
    }
    template <class Row> const Row &row() { return *rows<Row>(1); }

  private:
    std::shared_ptr<ReadTable<uint8_t>> bytes_;
    uint64_t at_ = 0;
};

// What is printed waits in files until the run has ended: not this much.
constexpr uint64_t kPrintedMost = 8 << 20;

bool print_into(const std::string &path) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    const bool done = file >= 0 && dup2(file, 1) >= 0 && dup2(file, 2) >= 0;
    if (file >= 0) close(file);
    return done;
}

uint64_t size_of(const std::string &path) {
    struct stat facts{};
    return stat(path.c_str(), &facts) == 0 ? static_cast<uint64_t>(facts.st_size) : 0;
}

void print_all(int to, const char *text, size_t left) {
    while (left) {
        const ssize_t done = write(to, text, left);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return;
        text += done;
        left -= static_cast<size_t>(done);
    }
}

} // namespace

// Each process begins with the block of its own number: who meets whom there does not depend on who is fast.
struct Shares::Common {
    std::atomic<size_t> next;
    std::atomic<bool> given_up{false}, no_room{false};
};

// What a process left, read from its first block to its last.
class Shares::Left {
  public:
    Left(const Job &job, std::string path)
        : job_(job), path_(std::move(path)), in_(rest_of(path_)), printed_(printed_of(path_)),
          ran_count_(in_.row<uint64_t>()), ran_(in_.rows<Ran>(ran_count_)), records_(path_, sites()) {
        for (uint64_t left = in_.row<uint64_t>(); left; --left) {
            const int64_t *head = in_.rows<int64_t>(2);
            const uint32_t *rows = in_.rows<uint32_t>(static_cast<uint64_t>(head[1]));
            meetings_.push_back({{rows, rows + head[1]}, head[0]});
        }
    }
    // Whether it ran this block; then that is the one to take over next.
    bool has(size_t block) const { return next_ < ran_count_ && ran_[next_].block == block; }
    void take_over(const Block &block, Machine &machine, Records &records);
    bool whole() const { return next_ == ran_count_; }
    void remove() const {
        for (const char *table : {"", ".operands", ".calls", ".geometries", ".footprints", ".tiles", ".lists",
                                  ".rest", ".printed"})
            unlink((path_ + table).c_str());
    }

  private:
    std::vector<SiteRow> sites() {
        std::vector<SiteRow> found;
        for (uint64_t left = in_.row<uint64_t>(); left; --left) {
            const FarSite &far = in_.row<FarSite>();
            const Site at = near_site(job_.kernels, far);
            found.push_back({at.file, at.line, static_cast<Instr>(far.instr), static_cast<PipeId>(far.pipe)});
        }
        return found;
    }
    void take_over_core(Core &core, uint32_t row, uint32_t meeting);

    const Job &job_;
    std::string path_;
    Reader in_;
    ReadTable<char> printed_;
    uint64_t ran_count_;
    const Ran *ran_;
    LeftRecords records_;
    std::vector<Meeting> meetings_;
    uint64_t next_ = 0, told_ = 0, met_ = 0;
    uint32_t rows_ = 0;
};

void Shares::Left::take_over(const Block &block, Machine &machine, Records &records) {
    const Ran &ran = ran_[next_++];
    if (ran.meetings < met_ || ran.meetings > meetings_.size() || ran.printed < told_ ||
        ran.printed > printed_.size())
        fail(Fault::OurBug, {}, "a share of the blocks counts what it does not have");
    const uint32_t row = records.size() - rows_; // what is added to the number of a row; may wrap around
    const auto meeting = static_cast<uint32_t>(machine.meetings().size() - met_);
    records_.take_over(ran.records, records);
    rows_ = ran.records.rows;
    for (; met_ < ran.meetings; ++met_) {
        for (uint32_t &signal : meetings_[met_].rows) signal += row;
        machine.take_over(std::move(meetings_[met_]));
    }
    for (size_t i = block.first; i < block.end; ++i) take_over_core(machine.core(i), row, meeting);
    machine.keep(in_.bytes());
    in_.bytes()->release();
    print_all(1, printed_.begin() + told_, ran.printed - told_);
    told_ = ran.printed;
}

void Shares::Left::take_over_core(Core &core, uint32_t row, uint32_t meeting) {
    const Count count = in_.row<Count>();
    core.clock.take_over(in_.rows<CoreStep>(count.steps), count.steps, row, meeting);
    core.clock.take_over(in_.rows<Access>(count.accesses), count.accesses);
    const Clock::LeftOver *flags = in_.rows<Clock::LeftOver>(count.flags);
    for (uint64_t f = 0; f < count.flags; ++f) {
        Clock::LeftOver flag = flags[f];
        flag.row += row;
        core.clock.take_over(flag);
    }
    for (uint64_t left = count.remarks; left; --left) {
        const Site at = near_site(job_.kernels, in_.row<FarSite>());
        const uint64_t size = in_.row<uint64_t>();
        core.remarks.push_back({at, {in_.rows<char>(size), size}});
    }
}

Shares::Shares(Job &job) : records_path_(job.records_path) {
    for (size_t i = 0; i < job.cores.size(); ++i) {
        if (!i || job.cores[i].identity.block != job.cores[i - 1].identity.block) blocks_.push_back({i, i});
        ++blocks_.back().end;
    }
    const size_t count = std::max<size_t>(1, std::min(job.shares, blocks_.size()));
    void *common = mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        fail(Fault::Environment, {}, "no memory for processes to share: %s", strerror(errno));
    common_ = new (common) Common{count};
    for (size_t i = 0; i < count; ++i)
        processes_.push_back({records_path_ + ".share" + std::to_string(i), 0,
                              std::make_unique<TouchedLines>(job.gm_base, job.gm_size)});
    const pid_t first = getpid();
    for (size_t i = 1; i < count && !number_; ++i) {
        processes_[i].process = fork();
        if (processes_[i].process < 0)
            fail(Fault::Environment, {}, "no process for a share of the blocks: %s", strerror(errno));
        if (!processes_[i].process) number_ = i;
    }
    if (number_) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first) _exit(1);
    }
    job.records_path = processes_[number_].path;
    job.touched = processes_[number_].touched.get();
    for (int i : {0, 1}) printed_[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 3);
    if (print_into(printed_of(job.records_path))) return;
    if (number_) _exit(1); // the first process sees that, and gives up
    fail(Fault::Environment, {}, "cannot write %s: %s", job.records_path.c_str(), strerror(errno));
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

void Shares::give_up() noexcept { common_->given_up = true; }
void Shares::lack_room() noexcept { common_->no_room = true; }
bool Shares::lacks_room() const noexcept { return common_->no_room; }

bool Shares::prints_without_end() const {
    return size_of(printed_of(processes_[number_].path)) > kPrintedMost;
}

bool Shares::run(const Job &job, Machine &machine, Records &records) {
    for (size_t block = number_; block < blocks_.size(); block = common_->next++) {
        if (common_->given_up) return false;
        machine.run(blocks_[block].first, blocks_[block].end);
        fflush(nullptr);
        ran_.push_back(
            {block, size_of(printed_of(job.records_path)), machine.meetings().size(), records.counts()});
    }
    return kept_data(job);
}

bool Shares::leave(const Job &job, Machine &machine, Records &records) const {
    records.close();
    Writer out(rest_of(job.records_path));
    FarSite far;
    out.put(static_cast<uint64_t>(ran_.size()));
    out.put(ran_.data(), ran_.size());
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
    for (const Ran &ran : ran_)
        for (size_t i = blocks_[ran.block].first; i < blocks_[ran.block].end; ++i) {
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
    for (size_t i = 0; i < machine.core_count(); ++i) machine.core(i).clock.forget_steps();
    return out.finish();
}

bool Shares::wait() const {
    for (size_t number = 1; number < processes_.size(); ++number) {
        int status = 0;
        while (waitpid(processes_[number].process, &status, 0) < 0)
            if (errno != EINTR) return false;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return false;
        for (size_t earlier = 0; earlier < number; ++earlier)
            if (processes_[earlier].touched->meets(*processes_[number].touched)) return false;
    }
    return true;
}

void Shares::print_here() const {
    fflush(nullptr);
    for (int i : {0, 1}) dup2(printed_[i], i + 1);
}

void Shares::print_own() const noexcept {
    try {
        const ReadTable<char> text(printed_of(processes_[number_].path));
        print_all(printed_[0], text.begin(), text.size());
    } catch (const Failure &) {
        // the kernel took every descriptor: what it printed is lost, what it did is told
    }
}

bool Shares::take_over(const Job &job, Machine &machine, Records &records) const {
    print_here();
    std::vector<std::unique_ptr<Left>> left;
    for (const Process &process : processes_) left.push_back(std::make_unique<Left>(job, process.path));
    for (size_t block = 0; block < blocks_.size(); ++block) {
        size_t number = 0;
        while (number < left.size() && !left[number]->has(block)) ++number;
        if (number == left.size()) return false;
        left[number]->take_over(blocks_[block], machine, records);
    }
    for (const auto &one : left) {
        if (!one->whole()) return false;
        one->remove();
    }
    return true;
}

} // namespace insight_trace::engine
