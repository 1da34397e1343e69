"""Candidates for one task, z = 2x + y over 64 x 64 floats: right, slow, wrong by one op, racing, hanging, cheating."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

ROWS = 64
TASK = {
    "name": "axpy",
    "inputs": [{"name": name, "dtype": "f32", "shape": [ROWS, 64]} for name in "xy"],
    "outputs": [{"name": "z", "dtype": "f32", "shape": [ROWS, 64]}],
    "reference": "2 * x + y",
    "baseline": "baseline.cpp",
    "seconds": 5.0,
}

FILE = """\
#include <pto/pto-inst.hpp>
using namespace pto;
using Rows = Tile<TileType::Vec, float, {rows}, 64, BLayout::RowMajor, {rows}, 64>;
using Global = GlobalTensor<float, Shape<1, 1, 1, {rows}, 64>, Stride<{size}, {size}, {size}, 64, 1>>;
{before}__global__ AICORE void axpy(__gm__ float *x, __gm__ float *y, __gm__ float *z) {{
#if defined(__DAV_VEC__)
    Rows a, b;
    TASSIGN(a, 0x{a:x});
    TASSIGN(b, 0x{b:x});
    for (int row = 0; row < {turns}; {step}) {{
        Global gx(x + row * {size}), gy(y + row * {size}), gz(z + row * {size});
{body}    }}
#endif
}}
"""


def flag(source: str, target: str, event: int = 0) -> str:
    pipes = f"PIPE_{source}, PIPE_{target}, EVENT_ID{event}"
    return f"        set_flag({pipes});\n        wait_flag({pipes});\n"


LOAD = "        TLOAD(a, gx);\n        TLOAD(b, gy);\n"
COMPUTE = "        TMULS(a, a, 2.0f);\n        pipe_barrier(PIPE_V);\n        TADD(a, a, b);\n"
STORE = "        TSTORE(gz, a);\n"
TWICE = "        TADD(b, b, a);\n        pipe_barrier(PIPE_V);\n        TADD(a, a, b);\n"


def body(compute: str = COMPUTE, event: int = 0, load: str = LOAD, store: str = STORE) -> str:
    return (
        load
        + flag("MTE2", "V", event)
        + compute
        + flag("V", "MTE3", event)
        + store
        + flag("MTE3", "MTE2", event)
    )


def text(
    inside: str,
    rows: int = 16,
    base: int = 0,
    before: str = "",
    step: str = "++row",
    turns: int | None = None,
) -> str:
    bytes_ = rows * 64 * 4
    return FILE.format(
        rows=rows, size=rows * 64, a=base, b=base + bytes_, before=before, body=inside, step=step,
        turns=ROWS // rows if turns is None else turns,
    )  # fmt: skip


def right() -> Iterator[str]:
    for rows, event, base, compute in itertools.product(
        (16, 32, 64), range(3), (0, 0x2000, 0x8000), (COMPUTE, TWICE)
    ):
        yield text(body(compute, event), rows, base)


def slow() -> Iterator[str]:
    for rows, event, every in itertools.product(
        (1, 2, 4), range(3), ("", "        pipe_barrier(PIPE_ALL);\n", "        dsb(DSB_DDR);\n")
    ):
        yield text(body(COMPUTE + every, event), rows)


WRONG_OPS = (
    ("TADD(a, a, b)", "TSUB(a, a, b)"), ("TADD(a, a, b)", "TMUL(a, a, b)"), ("TADD(a, a, b)", "TMAX(a, a, b)"),
    ("TADD(a, a, b)", "TMIN(a, a, b)"), ("TADD(a, a, b)", "TADD(a, a, a)"), ("TADD(a, a, b)", "TADD(a, b, b)"),
    ("TMULS(a, a, 2.0f)", "TMULS(a, a, 3.0f)"), ("TMULS(a, a, 2.0f)", "TADDS(a, a, 2.0f)"),
    ("TMULS(a, a, 2.0f)", "TMULS(a, a, -2.0f)"), ("TMULS(a, a, 2.0f)", "TMULS(b, b, 2.0f)"),
    ("TMULS(a, a, 2.0f)", "TMULS(a, a, 2.001f)"), ("TMULS(a, a, 2.0f)", "TABS(a, a)"),
)  # fmt: skip


def wrong() -> Iterator[str]:
    for rows, event, (old, new) in itertools.product((16, 32), range(2), WRONG_OPS):
        yield text(body(COMPUTE.replace(old, new), event), rows)


def racing() -> Iterator[str]:
    lost = (("MTE2", "V"), ("V", "MTE3"), ("MTE3", "MTE2"))
    for rows, event, base, pair in itertools.product((16, 32), range(2), (0, 0x4000, 0x8000), lost):
        yield text(body(event=event).replace(flag(*pair, event), ""), rows, base)


def hanging() -> Iterator[str]:
    for rows, event in itertools.product((16, 32), range(3)):
        waits = f"        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID{event});\n"
        yield text(body(event=event).replace(waits, waits.replace(f"ID{event}", f"ID{event + 3}")), rows)
        yield text(body(event=event) + f"        wait_flag(PIPE_V, PIPE_S, EVENT_ID{event});\n", rows)
    yield text(body(), step="row += 0")
    yield text(body().replace(LOAD, LOAD + "        for (volatile int i = 0; i >= 0; i = 1) {}\n"))


SCALAR = """\
#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void axpy(__gm__ float *x, __gm__ float *y, __gm__ float *z) {
#if defined(__DAV_VEC__)
    for (int i = 0; i < 4096; ++i) {%s}
    set_mask_norm();
#endif
}
"""


def cheating() -> Iterator[tuple[str, str]]:
    """In ten ways, three times each, with what the judge must say."""
    for rows in (16, 32, 64):
        event = rows // 32
        yield (
            text("        if (row >= 0) return;\n" + body(event=event), rows),
            "incomplete",
        )  # nothing at all
        zeros = "        TEXPANDS(a, 0.0f);\n"
        yield text(zeros + flag("V", "MTE3", event) + STORE + flag("MTE3", "V", event), rows), "incomplete"
        copied = (
            LOAD.splitlines(keepends=True)[0]
            + flag("MTE2", "MTE3", event)
            + STORE
            + flag("MTE3", "MTE2", event)
        )
        yield text(copied, rows), "incomplete"  # an input returned
        part = body(event=event)
        yield (
            text(part, rows, turns=ROWS // rows - 1 if rows < 64 else 0),
            "incomplete",
        )  # old memory for the rest
        yield (
            SCALAR % f" z[i] = {rows // 16}.0f * x[i] * {32 / rows}f + y[i]; ",
            "incomplete",
        )  # the scalar unit
        opened = f'        static auto *file = fopen("reference{rows}.py", "r");\n'
        yield text(opened + body(event=event), rows), "forbidden"
        yield text(body(event=event), rows, before=f'#include "/tmp/reference{rows}.npy"\n'), "forbidden"
        yield text(f'        asm volatile("nop"); // {rows}\n' + body(event=event), rows), "forbidden"
        changed = body(event=event) + "        TSTORE(gx, b);\n" + flag("MTE3", "MTE2", event)
        yield text(changed, rows), "forbidden"  # an input rewritten
        tampered = f"        insight_trace::engine::clock = {rows};\n"
        yield text(tampered + body(event=event), rows), "forbidden"


COUNTS = {"right": 54, "slow": 27, "wrong": 39, "fault": 36, "hang": 14, "cheating": 30}


def candidates(share: int = 1) -> list[tuple[str, str]]:
    """Outcome and text of 200, or of every n-th."""
    found: list[tuple[str, str]] = []
    for kind, make in (
        ("right", right),
        ("slow", slow),
        ("wrong", wrong),
        ("fault", racing),
        ("hang", hanging),
    ):
        found += [(kind, made) for made in itertools.islice(make(), COUNTS[kind])][::share]
    return [*found, *((kind, made) for made, kind in list(cheating())[::share])]


def write_candidates(folder: Path, share: int = 1) -> tuple[Path, list[Path], list[str]]:
    """The task's file, the candidates' files, and what each must be called."""
    folder.mkdir(parents=True, exist_ok=True)
    task = folder / "task.json"
    task.write_text(json.dumps(TASK))
    (folder / TASK["baseline"]).write_text(text(body()))
    paths, outcomes = [], []
    for number, (outcome, made) in enumerate(candidates(share)):
        path = folder / f"candidate_{number:03}.cpp"
        path.write_text(made)
        paths.append(path)
        outcomes.append(outcome)
    return task, paths, outcomes
