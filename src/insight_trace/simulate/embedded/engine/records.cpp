#include "records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "failure.hpp"

namespace insight_trace::engine {

static std::string beside(const std::string &path, const char *what) {
    return path.empty() ? path : path + what;
}

Records::Records(const std::string &path)
    : path_(path), rows_(path), operands_(beside(path, ".operands")), calls_(beside(path, ".calls")) {}

uint32_t Records::site(Site at, Instr instr, PipeId pipe) {
    Key key{at.file, (uint64_t(at.line) << 24) | (uint64_t(instr) << 8) | uint64_t(pipe)};
    Recent &recent = recent_[Hash()(key) >> 56];
    if (recent.key == key && at.file) return recent.site;
    auto [found, added] = index_.try_emplace(key, static_cast<uint32_t>(sites_.size()));
    if (added) sites_.push_back({at.file, at.line, instr, pipe});
    recent = {key, found->second};
    return found->second;
}

uint32_t Records::list(const std::vector<uint32_t> &tiles) {
    uint64_t hash = tiles.size();
    for (uint32_t tile : tiles) {
        const uint64_t words[] = {hash, tile};
        hash = hash_words(words, 2);
    }
    const auto next = static_cast<uint32_t>(lists_.size());
    const uint32_t found = list_index_.find_or_add(hash, next, [&](uint32_t place) {
        return lists_[place] == tiles.size() &&
               std::equal(tiles.begin(), tiles.end(), lists_.begin() + place + 1);
    });
    if (found == next) {
        lists_.push_back(static_cast<uint32_t>(tiles.size()));
        lists_.insert(lists_.end(), tiles.begin(), tiles.end());
    }
    return found;
}

template <class Row> static void write_table(const std::string &path, const std::vector<Row> &rows) {
    int file = created_file(path);
    const auto *bytes = reinterpret_cast<const char *>(rows.data());
    size_t left = rows.size() * sizeof(Row);
    while (left > 0) {
        ssize_t written = write(file, bytes, left);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            ::close(file);
            fail(Fault::Environment, {}, "cannot write %s: %s", path.c_str(), strerror(errno));
        }
        bytes += written;
        left -= static_cast<size_t>(written);
    }
    ::close(file);
}

RecordCounts Records::counts() const {
    const auto of = [](const auto &table) { return static_cast<uint32_t>(table.size()); };
    return {of(rows_),        of(operands_), of(calls_), of(geometries.rows()), of(footprints.rows()),
            of(tiles.rows()), of(lists_),    of(sites_)};
}

void Records::close() {
    written_ = static_cast<uint32_t>(rows_.finish());
    operands_.finish();
    calls_.finish();
    if (path_.empty()) return;
    write_table(path_ + ".geometries", geometries.rows());
    write_table(path_ + ".footprints", footprints.rows());
    write_table(path_ + ".tiles", tiles.rows());
    write_table(path_ + ".lists", lists_);
}

void Records::discard() noexcept {
    rows_.discard();
    operands_.discard();
    calls_.discard();
}

size_t busiest_pipe(const Records &records, size_t cores) {
    struct Pipe {
        int64_t busy = 0, until = 0;
    };
    std::vector<std::array<Pipe, static_cast<size_t>(PipeId::COUNT)>> pipes(cores);
    std::vector<uint8_t> begun(cores);
    for (uint32_t row = 0; row < records.size(); ++row) {
        const Record &record = records[row];
        const PipeId unit = records.sites()[record.site].pipe;
        const Form form = static_cast<Form>(record.form);
        if (record.core >= cores || form == Form::Flag || form == Form::Barrier || form == Form::Plain)
            continue;
        if (unit != PipeId::S) begun[record.core] = 1;
        if (!begun[record.core]) continue;
        Pipe &pipe = pipes[record.core][static_cast<size_t>(unit)];
        pipe.busy += std::max<int64_t>(0, record.end - std::max(record.start, pipe.until));
        pipe.until = std::max(pipe.until, record.end);
    }
    int64_t most = 0;
    size_t found = 0;
    for (const auto &core : pipes)
        for (size_t pipe = 0; pipe < core.size(); ++pipe)
            if (core[pipe].busy > most) {
                most = core[pipe].busy;
                found = pipe;
            }
    return found;
}

} // namespace insight_trace::engine
