"""The slot table reads as the design shows it."""

from recorded_dispatches import dispatch, payload, scalar, tensor

from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.commands.replay_text import slot_table
from insight_trace.model import Role


def test_the_table_is_aligned_and_says_where_each_content_comes_from(tmp_path):
    arguments = from_dispatch(
        dispatch(
            tensor(0, shape=(16, 1), strides=(16, 1), role=Role.INPUT, before=payload(tmp_path, bytes(64))),
            tensor(1, "BFLOAT16", (16, 16), role=Role.OUTPUT),
            tensor(2, "INT32", (4,), role=Role.INPUT, start_offset=8),
            scalar(10, "FLOAT32", 0x3F800000),
        )
    )
    assert slot_table(arguments) == [
        "slot  kind    dtype  shape                  value  content",
        "   0  tensor  f32    [16,1] strides [16,1]         exact, before dispatch",
        "   1  tensor  bf16   [16,16]                       output",
        "   2  tensor  i32    [4] at 8                      synthetic, zero, no payload recorded",
        "  10  scalar  f32                           1      exact, recorded, bits 0x3f800000",
    ]
