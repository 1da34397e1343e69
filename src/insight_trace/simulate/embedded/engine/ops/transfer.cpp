#include <cstring>
#include "elements.hpp"
namespace insight_trace::engine {
TILE_OP_BODY(TLOAD) { core.unsupported("TLOAD"); }
TILE_OP_BODY(TSTORE) { core.unsupported("TSTORE"); }
} // namespace insight_trace::engine
