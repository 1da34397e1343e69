// TPRINT: what a tile or a view of global memory holds.
#include <cstdio>
#include <string>

#include "elements.hpp"
#include "kernel_output.hpp"

namespace insight_trace::engine {

FILE *g_kernel_output = stderr;
uint64_t g_kernel_texts = 0;

void print_for_kernel(const char *text) {
    fputs(text, g_kernel_output);
    fflush(g_kernel_output); // a kernel may end its process
    ++g_kernel_texts;
}

namespace {

// As pto::PrintFormat.
struct Width {
    int columns, digits;
};
Width width_of(int64_t format) { return format == 2 ? Width{10, 6} : Width{8, format == 1 ? 2 : 4}; }

std::string spelled(double value, bool whole, const Width &width) {
    char text[64];
    if (whole)
        snprintf(text, sizeof text, "%*.0f", width.columns, value);
    else
        snprintf(text, sizeof text, "%*.*f", width.columns, width.digits, value);
    return text;
}

double number(const uint8_t *at, Type type) {
    double found = 0;
    with_type(type, [&](auto tag) {
        using T = decltype(tag);
        const T value = *reinterpret_cast<const T *>(at);
        found = double(Wide<T>(value));
    });
    return found;
}
bool is_whole(Type type) { return type != Type::F32 && type != Type::F16 && type != Type::BF16; }

const char *layout_name(const TileRef &tile) {
    static const char *const names[2][3] = {{"DN", "NZ", "NN"}, {"ND", "ZZ", "ZN"}};
    return names[tile.row_major][tile.inner];
}

void print_tile(Core &core, const TileRef &tile, const Width &width) {
    static const char *const places[] = {"Vec", "Mat", "Left", "Right", "Acc", "Bias", "Scaling"};
    std::string out = std::string("tile ") + type_name(tile.type) + " " + layout_name(tile) + " in " +
                      places[static_cast<int>(tile.space) % 7] + ", " + std::to_string(tile.rows) + " x " +
                      std::to_string(tile.cols) + ", valid " + std::to_string(tile.valid_rows) + " x " +
                      std::to_string(tile.valid_cols) + "\n";
    int size = type_size(tile.type);
    const uint8_t *data =
        core.local(tile.space, tile.address, uint64_t(tile.rows) * uint64_t(tile.cols) * uint64_t(size));
    // a bar and a line of dashes where the valid part ends
    for (int row = 0; row < tile.rows; ++row) {
        for (int column = 0; column < tile.cols; ++column) {
            if (column) out += column == tile.valid_cols ? "|" : " ";
            out += spelled(number(data + tile_offset(tile, row, column) * size, tile.type),
                           is_whole(tile.type), width);
        }
        out += "\n";
        if (row + 1 == tile.valid_rows && row + 1 < tile.rows)
            out += std::string(size_t(tile.cols) * size_t(width.columns + 1) - 1, '-') + "\n";
    }
    print_for_kernel(out.c_str());
}

void print_global(Core &core, const GlobalRef &view, const Width &width) {
    int size = type_size(view.type);
    std::string out = std::string("global ") + type_name(view.type);
    for (int64_t extent : view.shape) out += " " + std::to_string(extent);
    out += "\n";
    for (int64_t i = 0; i < view.shape[0]; ++i)
        for (int64_t j = 0; j < view.shape[1]; ++j)
            for (int64_t k = 0; k < view.shape[2]; ++k) {
                out += "[" + std::to_string(i) + ", " + std::to_string(j) + ", " + std::to_string(k) + "]\n";
                for (int64_t row = 0; row < view.shape[3]; ++row)
                    for (int64_t column = 0; column < view.shape[4]; ++column) {
                        int64_t offset = i * view.stride[0] + j * view.stride[1] + k * view.stride[2] +
                                         row * view.stride[3] + column * view.stride[4];
                        const uint8_t *at =
                            core.global(view.address + uint64_t(offset * size), uint64_t(size), kReads);
                        out +=
                            (column ? " " : "") + spelled(number(at, view.type), is_whole(view.type), width);
                        if (column + 1 == view.shape[4]) out += "\n";
                    }
            }
    print_for_kernel(out.c_str());
}

} // namespace

// A tile or a view, a format, and maybe a buffer that the chip would print from.
TILE_OP_BODY(TPRINT) {
    core.barrier(PipeId::ALL);
    Width width =
        width_of(operands.count > 1 && operands[1].kind == Operand::Option ? operands[1].option : 0);
    if (!core.computes) return;
    if (operands[0].kind == Operand::Tile)
        print_tile(core, operands[0].tile, width);
    else if (operands[0].kind == Operand::Global)
        print_global(core, operands[0].global, width);
    else
        core.kernel_error("TPRINT prints tiles and global tensors");
}

} // namespace insight_trace::engine
