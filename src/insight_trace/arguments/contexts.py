"""The two context structures behind slots 48 and 49, built anew for every replay.

Layout: simpler, src/*/runtime/*/common/intrinsic.h. A kernel on its own has no asynchronous completion and no
DMA workspace, so those fields are null.
"""

from __future__ import annotations

import struct

# block_idx, block_num; completion: three pointers, capacity, task token
_LOCAL = struct.Struct("<ii QQQ I4x Q".replace(" ", ""))
# sub_block_id; two DMA workspace addresses
_GLOBAL = struct.Struct("<i4x QQ".replace(" ", ""))

LOCAL_CONTEXT_SIZE = _LOCAL.size
GLOBAL_CONTEXT_SIZE = _GLOBAL.size


def pack_local_context(block_idx: int, block_count: int) -> bytes:
    """What `get_block_idx(args)` and `get_block_num(args)` read."""
    return _LOCAL.pack(block_idx, block_count, 0, 0, 0, 0, 0)


def pack_global_context(sub_block_id: int) -> bytes:
    """What `get_sub_block_id(args)` reads: which vector core of a mix this is."""
    return _GLOBAL.pack(sub_block_id, 0, 0)
