#include "records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "core_step.hpp"
#include "failure.hpp"
#include "read_table.hpp"

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

namespace {

// Numbers of another run's rows as numbers of ours. What names no row stays as it is.
struct Renumbered {
    std::vector<uint32_t> places;
    uint32_t operator()(uint32_t there) const {
        if (there == kNone) return there;
        if (there >= places.size()) fail(Fault::OurBug, {}, "a share of the blocks names row %u", there);
        return places[there];
    }
};

template <class Row> Renumbered renumber(const std::string &path, Interned<Row> &into) {
    const ReadTable<Row> table(path);
    Renumbered here;
    for (const Row &row : table) here.places.push_back(into.index_of(row));
    return here;
}

} // namespace

void Records::take_over(const std::string &path, const std::vector<uint32_t> &sites) {
    const Renumbered site{sites};
    const Renumbered geometry = renumber(path + ".geometries", geometries);
    const Renumbered footprint = renumber(path + ".footprints", footprints);
    const Renumbered tile = renumber(path + ".tiles", tiles);
    Renumbered list_of;
    const ReadTable<uint32_t> lists(path + ".lists");
    std::vector<uint32_t> one;
    for (size_t at = 0; at < lists.size(); at += 1 + one.size()) {
        one.resize(std::min<size_t>(lists[at], lists.size() - at - 1));
        for (size_t i = 0; i < one.size(); ++i) one[i] = tile(lists[at + 1 + i]);
        list_of.places.resize(lists.size());
        list_of.places[at] = list(one);
    }
    const uint32_t first_operand = operands_.size(), first_call = calls_.size();
    for (const CallRow &row : ReadTable<CallRow>(path + ".calls"))
        calls_.append({row.op, row.core, list_of(row.tiles)});
    for (const OperandRow &row : ReadTable<OperandRow>(path + ".operands"))
        operands_.append({row.address, footprint(row.footprint), tile(row.tile)});
    for (const Record &row : ReadTable<Record>(path)) {
        Record record = row;
        record.site = site(row.site);
        record.geometry = geometry(row.geometry);
        record.operands += first_operand;
        if (row.call != kNoCall) record.call += first_call;
        rows_.append(record);
    }
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

} // namespace insight_trace::engine
