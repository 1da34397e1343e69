// How a core writes down the operands of its instructions.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core.hpp"
#include "elements.hpp"

namespace insight_trace::engine {

// The bytes of an operand that say where a tile or a tensor lies and how.
static std::pair<const void *, size_t> place_of(const Operand &operand) {
    if (operand.kind == Operand::Tile) return {&operand.tile, sizeof operand.tile};
    if (operand.kind == Operand::Global) return {&operand.global, offsetof(GlobalRef, layout) + 1};
    return {nullptr, 0}; // scalars and options lie nowhere
}

bool Core::KnownCall::is(const Operands &others) const {
    if (operands.size() != others.count) return false;
    for (uint32_t i = 0; i < others.count; ++i) {
        const auto [place, bytes] = place_of(others[i]);
        if (operands[i].kind != others[i].kind) return false;
        if (bytes && memcmp(place, place_of(operands[i]).first, bytes) != 0) return false;
    }
    return true;
}

// What a tile says of itself, once for each call: a valid part that is larger than the tile reaches what lies
// behind it, as on a device. Instructions check the bytes that they touch; that a part which none of them
// touches, as the rest of a scratch tile, lies past the end of the memory is worth a remark and no more.
void Core::check_tile(Op op, const TileRef &tile) {
    if (tile.valid_rows <= 0 || tile.valid_cols <= 0) return;
    if (tile.valid_rows <= tile.rows && tile.valid_cols <= tile.cols) return;
    const char *name = op_names[static_cast<int>(op)];
    const int64_t bits = tile.type == Type::F4E2M1 || tile.type == Type::F4E1M2 || tile.type == Type::I4
                             ? 4
                             : 8 * type_size(tile.type);
    const int64_t row = tile.row_major ? tile.cols : 1, col = tile.row_major ? 1 : tile.rows;
    const int64_t last = (tile.valid_rows - 1) * row + (tile.valid_cols - 1) * col;
    const uint64_t end = tile.address + uint64_t((last + 1) * bits + 7) / 8, size = space_size(tile.space);
    if (end > size && tile.inner == 0) // boxes are moved whole and may be declared larger than their memory
        remark(
            "%s: a tile of %d x %d at 0x%llx, %d x %d of it valid, ends at %llu, past the %llu bytes of %s",
            name, tile.rows, tile.cols, (unsigned long long)tile.address, tile.valid_rows, tile.valid_cols,
            (unsigned long long)end, (unsigned long long)size, space_name(tile.space));
    else
        remark("%s: a valid part of %d x %d in a tile of %d x %d reaches what lies behind the tile", name,
               tile.valid_rows, tile.valid_cols, tile.rows, tile.cols);
}

void Core::begin_call(Op op, const Operands &operands) {
    in_call_ = true;
    pieces_ = 0;
    unit_flag_ = 0;
    for (uint32_t i = 0; i < operands.count; ++i)
        if (operands[i].kind == Operand::Tile) unit_flag_ |= operands[i].tile.unit_flag;
    if (!detailed_) {
        for (uint32_t i = 0; i < operands.count; ++i)
            if (operands[i].kind == Operand::Tile) check_tile(op, operands[i].tile);
        return;
    }
    // loops come back with the same tiles
    uint64_t hash = at.line;
    for (uint32_t i = 0; i < operands.count; ++i) {
        uint64_t word = 0;
        if (operands[i].kind == Operand::Tile) word = operands[i].tile.address;
        if (operands[i].kind == Operand::Global) word = operands[i].global.address;
        hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }
    KnownCall &known = known_calls_[hash * 0xff51afd7ed558ccdull >> 56];
    if (!known.list_is_known || !known.is(operands)) know_call(op, operands, known);
    call_tiles_ = &known.tiles;
    call_ = records_.call(op, identity.index, known.list);
}

void Core::know_call(Op op, const Operands &operands, KnownCall &known) {
    for (uint32_t i = 0; i < operands.count; ++i)
        if (operands[i].kind == Operand::Tile) check_tile(op, operands[i].tile);
    known.operands.assign(operands.list, operands.list + operands.count);
    known.tiles.clear();
    tile_list_.clear();
    for (uint32_t i = 0; i < operands.count; ++i) {
        TileRow row;
        uint64_t bytes = 0;
        if (operands[i].kind == Operand::Tile) {
            const TileRef &t = operands[i].tile;
            row.address = t.address;
            row.rows = t.rows;
            row.cols = t.cols;
            row.valid_rows = t.valid_rows;
            row.valid_cols = t.valid_cols;
            row.memory = static_cast<uint8_t>(t.space);
            row.type = static_cast<uint8_t>(t.type);
            row.row_major = t.row_major;
            row.inner = t.inner;
            row.compact = t.compact;
            row.fractal = t.fractal;
            bytes = uint64_t(t.rows) * uint64_t(t.cols) * uint64_t(type_size(t.type));
        } else if (operands[i].kind == Operand::Global) {
            const GlobalRef &g = operands[i].global;
            row.address = g.address;
            row.memory = static_cast<uint8_t>(Space::GM);
            row.type = static_cast<uint8_t>(g.type);
            row.layout = g.layout;
            std::copy(g.shape, g.shape + 5, row.shape);
            std::copy(g.stride, g.stride + 5, row.stride);
            int64_t last = 0;
            for (int d = 0; d < 5; ++d) last += std::max<int64_t>(0, g.shape[d] - 1) * g.stride[d];
            bytes = uint64_t(std::max<int64_t>(0, last) + 1) * uint64_t(type_size(g.type));
        } else {
            continue;
        }
        const uint32_t tile = records_.tiles.index_of(row);
        tile_list_.push_back(tile);
        known.tiles.push_back({static_cast<Space>(row.memory), row.address, row.address + bytes, tile,
                               type_size(static_cast<Type>(row.type))});
    }
    known.list = records_.list(tile_list_);
    known.list_is_known = true;
}

void Core::end_call() {
    in_call_ = false;
    unit_flag_ = 0;
    call_ = kNoCall;
    call_tiles_ = &no_tiles_;
    further_.clear();
}

// The tile operand of the running op that an address lies in; of several a source is the last of them.
const Core::CallTile *Core::find_tile(Space space, uint64_t address, bool source) const {
    const CallTile *found = nullptr;
    for (const CallTile &tile : *call_tiles_) {
        if (tile.space != space || address < tile.begin || address >= tile.end) continue;
        if (!source) return &tile;
        found = &tile;
    }
    return found;
}

uint32_t Core::tile_at(Space space, uint64_t address, bool source) const {
    const CallTile *found = find_tile(space, address, source);
    return found ? found->tile : kNoTile;
}

void Core::begin_record(Record &r, Instr instr, PipeId pipe, Form form) const {
    r = {};
    used_pipes |= 1u << static_cast<int>(pipe);
    r.site = records_.site(at, instr, pipe);
    r.core = identity.index;
    r.form = static_cast<uint8_t>(form);
    r.partner = kNoPartner;
    r.geometry = kNoGeometry;
    r.operands = records_.operand_count();
    r.call = call_;
}

Record Core::record(Instr instr, PipeId pipe, Form form) const {
    Record r;
    begin_record(r, instr, pipe, form);
    return r;
}

Record &Core::next_record(Instr instr, PipeId pipe, Form form) {
    Record &r = records_.next();
    begin_record(r, instr, pipe, form);
    return r;
}

void Core::operand(int which, Role role, Space space, Type type, const Area &area, int64_t bytes,
                   bool exact) {
    if (!detailed_) return;
    Footprint footprint;
    footprint.memory = static_cast<uint8_t>(space);
    footprint.role = role;
    footprint.type = static_cast<uint8_t>(type);
    footprint.which = static_cast<uint8_t>(which);
    footprint.exact = exact;
    footprint.owner = area.owner;
    const bool source = !(role & kWrites);
    if (!area.parts) {
        footprint.walk.run = static_cast<uint32_t>(bytes);
        records_.operand(area.address, records_.footprints.index_of(footprint),
                         tile_at(space, area.address, source));
        return;
    }
    for (int i = 0; i < area.parts; ++i) {
        footprint.walk = area.walk[i];
        const uint64_t first = area.address + static_cast<uint64_t>(footprint.walk.offset);
        records_.operand(area.address, records_.footprints.index_of(footprint),
                         tile_at(space, first, source));
    }
}

void Core::also(Role role, Space space, Type type, const Area &area, bool exact) {
    if (space == Space::UB && area.address >= kRegisterFile) return; // registers, which no kernel can name
    if (detailed_ && !silent) further_.push_back({role, space, type, exact, area});
}

void Core::take_further_operands() {
    for (const Further &one : further_) operand(3, one.role, one.space, one.type, one.area, 0, one.exact);
    further_.clear();
}

uint32_t Core::moved_geometry(const Record &r, Type type, int64_t repeat, int64_t bytes) {
    Geometry geometry;
    geometry.form = r.form;
    geometry.type = static_cast<uint8_t>(type);
    geometry.repeat = static_cast<uint32_t>(repeat);
    geometry.bytes = bytes;
    geometry.atomic = atomic_store;
    geometry.unit_flag = static_cast<uint16_t>(unit_flag_);
    return geometry_of(geometry);
}

void Core::describe_vector(Record &r, Instr instr, Type type, int64_t repeat, int64_t elements,
                           const VectorOperand *const operands[3], bool counted) {
    if (!detailed_) return;
    VectorForm form;
    Geometry &geometry = form.geometry;
    geometry.form = r.form;
    geometry.type = static_cast<uint8_t>(type);
    geometry.counted = counted;
    geometry.repeat = static_cast<uint32_t>(repeat);
    geometry.elements = static_cast<uint32_t>(elements);
    for (int i = 0; i < 3; ++i) {
        const VectorOperand &o = *operands[i];
        geometry.block_stride[i] = o.block_stride;
        geometry.repeat_stride[i] = o.repeat_stride;
        VectorSpec &spec = form.spec[i];
        spec.piece = o.piece;
        spec.distance = o.distance;
        spec.mask = o.mask;
        spec.used = o.used;
        spec.typed = o.typed;
        spec.element = static_cast<uint8_t>(o.element);
        spec.unseen = o.unseen;
    }
    const uint64_t mixed = (uint64_t(r.site) << 40 ^ uint64_t(geometry.repeat) << 20 ^ geometry.elements) *
                           0x9e3779b97f4a7c15ull;
    VectorForm &known = vector_forms_[mixed >> 56];
    if (!known.filled || known.site != r.site ||
        memcmp(&known.geometry, &form.geometry, sizeof(Geometry) - sizeof(int64_t) * 2) != 0 ||
        memcmp(known.spec, form.spec, sizeof form.spec) != 0) {
        form.filled = true;
        form.site = r.site;
        int widest = type_size(type);
        for (const VectorOperand *o : {operands[0], operands[1], operands[2]})
            if (o->used && o->typed && !o->piece) widest = std::max(widest, type_size(o->element));
        const Repeats repeats{instr, type, repeat, elements, counted, 256 / widest};
        for (int i = 0; i < 3; ++i) {
            const VectorOperand &o = *operands[i];
            if (!o.used) continue;
            Footprint footprint;
            footprint.memory = static_cast<uint8_t>(Space::UB);
            footprint.role = role_of(instr, i);
            footprint.type = static_cast<uint8_t>(o.typed ? o.element : type);
            footprint.which = static_cast<uint8_t>(i);
            footprint.walk = walk_of(repeats, i, o);
            form.footprint[i] = records_.footprints.index_of(footprint);
        }
        known = form;
        // the mask is a fact of the instruction too
        if (!counted && repeat > 0) {
            const int64_t active = std::min<int64_t>(repeats.lanes, (elements + repeat - 1) / repeat);
            for (int word = 0; word < 2; ++word) {
                const int64_t bits = std::clamp<int64_t>(active - 64 * word, 0, 64);
                form.geometry.mask[word] = bits == 64 ? ~0ull : (1ull << bits) - 1;
            }
            if (operands[0]->mask) form.geometry.mask[0] = operands[0]->mask;
        }
        known.index = records_.geometries.index_of(form.geometry);
    }
    r.geometry = known.index;
    for (int i = 0; i < 3; ++i)
        if (operands[i]->used)
            records_.operand(operands[i]->address, known.footprint[i],
                             tile_at(Space::UB, operands[i]->address, i != 0));
    take_further_operands();
}

void Core::gather_areas(Instr instr, Type type, int64_t repeat, int64_t elements,
                        std::array<const VectorOperand *, 3> operands, bool counted, std::vector<Area> &reads,
                        std::vector<Area> &writes) const {
    int widest = type_size(type);
    for (const VectorOperand *o : operands)
        if (o->used && o->typed && !o->piece) widest = std::max(widest, type_size(o->element));
    const Repeats repeats{instr, type, repeat, elements, counted, 256 / widest};
    for (int i = 0; i < 3; ++i) {
        Area area(operands[size_t(i)]->address);
        area.add() = walk_of(repeats, i, *operands[size_t(i)]);
        if (!area.walk[0].run) continue;
        const Role role = role_of(instr, i);
        if (role & kReads) reads.push_back(area);
        if (role & kWrites) writes.push_back(area);
    }
    for (const Further &one : further_) (one.role & kWrites ? writes : reads).push_back(one.area);
}

} // namespace insight_trace::engine
