// Events as text, row after row, from columns: encoding.py describes them and has the same in Python, for
// where no compiler is. Loaded into the tool's own process, so nothing here throws and every access is within
// what it was given.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t MARGIN = 64;      // readable behind every text and writable behind the output
constexpr int64_t NUMBER_ROOM = 32; // of one number as text, at most

enum Kind : uint32_t { CONSTANT, PICKED, MICROS, INTEGERS, FLOATS, STRINGS };

// Copies more than asked for, up to the margin: most pieces are short, and a copy of fixed length is a few
// instructions.
inline char *put(char *out, const char *text, int64_t size) {
    if (size <= 32) {
        std::memcpy(out, text, 32);
    } else if (size <= MARGIN) {
        std::memcpy(out, text, MARGIN);
    } else {
        std::memcpy(out, text, static_cast<size_t>(size));
    }
    return out + size;
}

// The shortest text that gives the double back, laid out as msgspec does: a decimal point always, an exponent
// below 1e-5 and from 1e16 on.
char *put_double(char *out, double value) {
    if (std::signbit(value)) {
        *out++ = '-';
        value = -value;
    }
    if (value == 0) {
        return put(out, "0.0                                                             ", 3);
    }
    if (value >= 1e-5 && value < 1e16) {
        char *end = std::to_chars(out, out + NUMBER_ROOM, value, std::chars_format::fixed).ptr;
        if (std::memchr(out, '.', static_cast<size_t>(end - out)) == nullptr) {
            *end++ = '.';
            *end++ = '0';
        }
        return end;
    }
    char *end = std::to_chars(out, out + NUMBER_ROOM, value, std::chars_format::scientific).ptr;
    char *sign = static_cast<char *>(std::memchr(out, 'e', static_cast<size_t>(end - out))) + 1;
    char *to = *sign == '-' ? sign + 1 : sign;
    const char *from = sign + 1;
    while (from + 1 < end && *from == '0') {
        ++from;
    }
    while (from < end) {
        *to++ = *from++;
    }
    return to;
}

// Cycles as float32 microseconds. The same ones come again: a flag is drawn three times, and most durations
// are short.
class Micros {
  public:
    explicit Micros(double mhz) : mhz_(mhz), known_(SLOTS) {}

    double mhz() const { return mhz_; }

    char *put_cycles(char *out, int64_t cycles) {
        Text &text = known_[static_cast<uint64_t>(cycles) % SLOTS];
        if (text.cycles != cycles) {
            const auto shown = static_cast<float>(static_cast<double>(cycles) / mhz_);
            text.size = static_cast<int32_t>(put_double(text.text, static_cast<double>(shown)) - text.text);
            text.cycles = cycles;
        }
        std::memcpy(out, text.text, NUMBER_ROOM);
        return out + text.size;
    }

  private:
    static constexpr uint64_t SLOTS = 4096;
    struct Text {
        int64_t cycles = -1;
        int32_t size = 0;
        char text[MARGIN] = {};
    };
    double mhz_;
    std::vector<Text> known_;
};

// The next text of a JSON array of strings; `at` moves behind the quote that opens the one after it.
inline char *put_string(char *out, const char *&at, const char *end) {
    const char *from = at;
    const auto *quote = static_cast<const char *>(std::memchr(at, '"', static_cast<size_t>(end - at)));
    if (std::memchr(at, '\\', static_cast<size_t>(quote - at)) != nullptr) {
        for (quote = at; *quote != '"'; ++quote) {
            quote += *quote == '\\' ? 1 : 0;
        }
    }
    at = quote + 3; // `","`
    return put(out, from, quote - from);
}

} // namespace

extern "C" {

struct Column {
    uint32_t kind;
    uint32_t wide;        // the index has 64 bits, else 32
    const char *text;     // of CONSTANT, PICKED and STRINGS, with a margin behind it
    const int64_t *begin; // of PICKED: where each text begins, and the end of the last one
    const void *index;    // of PICKED and all numbers: one a row
    int64_t size;         // of the text
    double mhz;           // of MICROS
};

// Bytes that the rows take at most, with the margin.
int64_t insight_trace_room(const Column *columns, int64_t count, int64_t rows) {
    int64_t room = MARGIN;
    for (const Column *column = columns; column != columns + count; ++column) {
        if (column->kind == CONSTANT) {
            room += column->size * rows;
        } else if (column->kind == STRINGS) {
            room += column->size;
        } else if (column->kind != PICKED) {
            room += NUMBER_ROOM * rows;
        } else {
            for (int64_t row = 0; row < rows; ++row) {
                const int64_t place = column->wide != 0 ? static_cast<const int64_t *>(column->index)[row]
                                                        : static_cast<const int32_t *>(column->index)[row];
                room += column->begin[place + 1] - column->begin[place];
            }
        }
    }
    return room;
}

// Writes the rows and returns how many bytes they have.
int64_t insight_trace_lay(const Column *columns, int64_t count, int64_t rows, char *out) {
    static thread_local Micros micros(0);
    std::vector<const char *> at(static_cast<size_t>(count));
    for (int64_t place = 0; place < count; ++place) {
        at[static_cast<size_t>(place)] = columns[place].text + 2; // `["` of STRINGS
        if (columns[place].kind == MICROS && columns[place].mhz != micros.mhz()) {
            micros = Micros(columns[place].mhz);
        }
    }
    char *const begin = out;
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t place = 0; place < count; ++place) {
            const Column &column = columns[place];
            switch (column.kind) {
            case CONSTANT:
                out = put(out, column.text, column.size);
                break;
            case PICKED: {
                const int64_t which = column.wide != 0 ? static_cast<const int64_t *>(column.index)[row]
                                                       : static_cast<const int32_t *>(column.index)[row];
                const int64_t first = column.begin[which];
                out = put(out, column.text + first, column.begin[which + 1] - first);
                break;
            }
            case MICROS:
                out = micros.put_cycles(out, static_cast<const int64_t *>(column.index)[row]);
                break;
            case INTEGERS:
                out = std::to_chars(out, out + NUMBER_ROOM, static_cast<const int64_t *>(column.index)[row])
                          .ptr;
                break;
            case FLOATS:
                out = put_double(out, static_cast<const double *>(column.index)[row]);
                break;
            default:
                out = put_string(out, at[static_cast<size_t>(place)], column.text + column.size);
            }
        }
    }
    return out - begin;
}

// What each (core, key) of hotspots.py executed, in tables of `cores` x `keys`: `executed`, `cycles`, `busy`,
// `moved` and `stalled` begin at 0, `rank`, `conflict` and `utilisation` at what any row changes. Rows come
// by their start, so that the union of a cell's intervals is what each adds to the end of those before. A row
// counts for each key of its list: `begin[list]` up to the next one's.
struct RowsToCount {
    int64_t rows, keys;
    const int64_t *order;
    const uint16_t *core;
    const int64_t *list; // by row
    const int64_t *begin, *key;
    const int64_t *start, *end, *rank, *moved, *stalled;
    const int32_t *read_conflict, *write_conflict;
    const float *utilisation;
};
struct CellCounts {
    int64_t *executed, *cycles, *busy, *moved, *stalled, *rank, *read_conflict, *write_conflict, *latest;
    float *utilisation;
};
void insight_trace_count(const RowsToCount *given, const CellCounts *into, const int64_t *place_of_core) {
    for (int64_t number = 0; number < given->rows; ++number) {
        const int64_t row = given->order[number], list = given->list[row];
        const int64_t start = given->start[row], end = given->end[row];
        for (int64_t at = given->begin[list]; at < given->begin[list + 1]; ++at) {
            const int64_t cell = place_of_core[given->core[row]] * given->keys + given->key[at];
            ++into->executed[cell];
            into->cycles[cell] += end - start;
            const int64_t from = start > into->latest[cell] ? start : into->latest[cell];
            if (end > from) {
                into->busy[cell] += end - from;
                into->latest[cell] = end;
            }
            into->moved[cell] += given->moved[row];
            into->stalled[cell] += given->stalled[row];
            auto least = [&](auto &value, auto other) { value = other < value ? other : value; };
            auto most = [&](auto &value, int64_t other) { value = other > value ? other : value; };
            least(into->rank[cell], given->rank[row]);
            least(into->utilisation[cell], given->utilisation[row]);
            most(into->read_conflict[cell], given->read_conflict[row]);
            most(into->write_conflict[cell], given->write_conflict[row]);
        }
    }
}

// The first thread that is free from each start on; core_timeline.py says what free means. Ends never
// decrease. Returns how many threads there are; `created` has the row that first uses each of them, for as
// many as it has room.
int64_t insight_trace_threads(const int64_t *start, const int64_t *end, int64_t rows, int32_t *thread,
                              int64_t *created, int64_t room) {
    std::vector<int64_t> busy;
    const int64_t horizon = rows != 0 ? end[rows - 1] : 0;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t last = end[row] < horizon ? end[row] : horizon - 1;
        size_t place = 0;
        while (place < busy.size() && busy[place] >= start[row]) {
            ++place;
        }
        if (place == busy.size()) {
            if (static_cast<int64_t>(place) < room) {
                created[place] = row;
            }
            busy.push_back(start[row] < horizon ? last : -1);
        } else if (start[row] < horizon) {
            busy[place] = last;
        }
        thread[row] = static_cast<int32_t>(place + 1);
    }
    return static_cast<int64_t>(busy.size());
}
}
