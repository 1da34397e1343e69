"""Published times of whole kernels, and how to run each of them: what `whole_kernels.py` compares.

`role` says what a point is for. `fit`: a parameter of a chip's file was set from it, so it shows that one set of
numbers describes it, no more. `test`: nothing was set from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

A2 = "Ascend910B1"
B2 = "Ascend910B2"
A5 = "Ascend950PR_9579"  # 1650 MHz, as the published samples ran


@dataclass(frozen=True)
class Whole:
    """One published time and the run that stands for it."""

    kernel: str
    case: str
    micros: float
    source: str  # the kernel's source in the checkout; "" for one of ours
    entry: str  # C++: the call, with p0, p1, … for the slots
    tensors: Callable[[], dict[int, Any]]
    cores: str  # aic, aiv or mix
    blocks: int
    chip: str
    role: str = "test"
    l2: str = "cold"
    long: bool = False  # takes minutes
    define: str = ""  # before the source is included
    remark: str = ""
    # how it was measured: "dur" the task's duration, "ev" between two events, "cnt" by the kernel's own counter
    method: str = "dur"
    commit: str = ""  # of the checkout's history that has the kernel; "": as it is checked out
    headers: str = ""  # a folder of the checkout that has what the source includes beside its own
    # how much longer it was published than another measurement of the same says; a share
    spread: float = 0.0
    pipes: dict[str, float] = field(default_factory=dict)  # published busy shares

    @property
    def launch(self) -> str:
        """Where nothing is left in L2, its program launches it once: that is a first launch."""
        return "first" if self.l2 == "cold" else "kernel"

    @property
    def family(self) -> str:
        return "a5" if "950" in self.chip else "a2a3"


def _bytes(*sizes: int) -> Callable[[], dict[int, Any]]:
    return lambda: {slot: np.zeros(size, np.uint8) for slot, size in enumerate(sizes)}


def gemm() -> Iterator[Whole]:
    times = {1536: 38.8, 3072: 206.7, 6144: 1506.0, 7680: 3168.0}
    shares = {1536: (54.5, 42.2, 72.2, 7.7), 3072: (79, 62, 90.9, 5.8), 6144: (86.7, 68.1, 95.2, 3.1)}
    shares[7680] = (80.6, 63.0, 98.4, 2.4)
    for n, micros in times.items():
        sizes = f"{n}, {n}, {n}, {n // 4}, {n}, {n // 6}"
        yield Whole(
            "GEMM half", f"{n}³", micros, "kernels/manual/a2a3/gemm_performance/gemm_performance_kernel.cpp",
            f"GemmPerformance<uint16_t, 24, {sizes}, 128, 64, 256, 1, 4, 4, 1>(p0, p1, p2)",
            _bytes(4 * n * n, 2 * n * n, 2 * n * n), "aic", 24, A2, long=n > 3072, role="fit" if n == 1536 else "test",
            remark="seen when the launch was chosen" if n == 1536 else "",
            pipes=dict(zip(("CUBE", "MTE1", "MTE2", "FIXP"), shares[n], strict=True)),
        )  # fmt: skip


def queues_of(blocks: int) -> np.ndarray:
    """The ready queues of gemm_ar, empty: a header with the place of each block's queue."""
    header, each = 192, 4096
    words = np.zeros((header + blocks * each) // 4, np.int32)
    words[0] = blocks
    words[8 : 8 + blocks] = header + each * np.arange(blocks)
    return words.view(np.uint8)


def gemm_ar() -> Iterator[Whole]:
    rows, k, cols = 5504, 6144, 1536  # 5416 x 1408 in whole tiles
    for chip, folder, blocks, micros, call in (
        (A2, "a2a3", 24, 368.1, "GemmComputeKernel(p0, p1, p2, p3, 0, 24, 6144)"),
        (A5, "a5", 32, 323.2, "GemmComputeKernel(p0, p1, p2, p3, 0, 32, 6144)"),
    ):
        yield Whole(
            "gemm_ar, its product", "5416 x 6144 x 1408", micros,
            f"kernels/manual/{folder}/gemm_ar/gemm_compute_kernel.cpp", call,
            lambda blocks=blocks: {  # type: ignore[misc]
                0: np.zeros(2 * rows * cols, np.uint8), 1: np.zeros(2 * rows * k, np.uint8),
                2: np.zeros(2 * k * cols, np.uint8), 3: queues_of(blocks),
            },
            "aic", blocks, chip, l2="warm",
            define=f"#define CONFIG_COMPUTE_BLOCK_NUM {blocks}\n", method="ev",
            remark="mean of ten launches after five",
        )  # fmt: skip


def top_k() -> Iterator[Whole]:
    for rows, micros, kind, size, k, role in (
        (4800, 324.106, "float", 4, 1000, "fit"),
        (3456, 238.819, "float", 4, 1000, "test"),
        (2304, 161.375, "float", 4, 1000, "test"),
        (4800, 326.886, "uint16_t", 2, 1008, "test"),
    ):
        yield Whole(
            "top-k", f"{rows} x 1024, {kind}", micros, "kernels/manual/a2a3/topk/topk_kernel.cpp",
            f"Topk<{kind}, 1, 1, 1, {rows}, 1024, 1, 1, 1, {rows}, 1280, {k}, 48>(p0, p1, p2, p3)",
            _bytes(size * rows * k, 4 * rows * k, size * rows * 1280, 4 * 1024), "aiv", 48, A2, role=role,
            remark="sets the time of a merge" if role == "fit" else "",
        )  # fmt: skip


def conv2d() -> Iterator[Whole]:
    for c1, h, w, micros in (
        (8, 8, 48, 32.2), (16, 12, 64, 147.3), (24, 12, 96, 470.9), (32, 16, 96, 1097.9), (40, 15, 128, 2131.2),
    ):  # fmt: skip
        m, k, n = 4 * h * w, c1 * 16 * 9, c1 * 192
        sizes = f"{m}, {k}, {n}, {h * w}, {k}, {n // 6}"
        yield Whole(
            "conv2d 3 x 3", f"[4,{c1},{h},{w},16]", micros,
            "kernels/manual/a2a3/conv2d_forward/conv2d_forward_kernel.cpp",
            f"Conv2dForward<uint16_t, 24, {sizes}, 128, 48, 256, 1, 3, 3, 1, 4, {c1}, {h}, {w}, 16, 3, 3, {h}, {w}>"
            "(p0, p1, p2)",
            _bytes(2 * m * n, 2 * 4 * c1 * h * w * 16, 2 * k * n), "aic", 24, A2, long=c1 > 16,
            role="fit" if c1 == 8 else "test", remark="seen when the launch was chosen" if c1 == 8 else "",
        )  # fmt: skip


_FA = "kernels/manual/common/flash_atten/fa_performance_kernel.cpp"
_EARLIER_FA = "kernels/manual/a2a3/flash_atten/fa_performance_kernel.cpp"


def _tile_of(columns: int) -> int:
    """Columns of a tile, as the program chooses that compares this kernel with torch_npu's for these lengths
    (demos/baseline/flash_atten, run_fa_custom)."""
    return 256 if columns <= 1024 else 512 if columns <= 8192 else 1024


def _attention(
    rows: int,
    columns: int,
    micros: float,
    chip: str,
    role: str,
    case: str,
    fifo: int = 8,
    width: int = 256,
    **more: Any,
) -> Whole:
    head = 128
    blocks = rows // 128
    tile = 128 * width
    earlier = fifo != 8
    slots = (
        blocks if earlier else max(blocks, 25)
    )  # as its own program allocates: the size of a buffer says its pages
    more = {"l2": "warm", **more}
    return Whole(
        "flash attention, 12/2025" if earlier else "flash attention", case, micros, _EARLIER_FA if earlier else _FA,
        f"runTFA<{rows}, {head}, {columns}, 128, 128, {width}, 4, {fifo}, false, "
        + ("6" if earlier else "false, 4")
        + ">((__gm__ uint64_t *)p0, (__gm__ half *)p1, (__gm__ half *)p2, (__gm__ half *)p3, (__gm__ half *)p4, "
        "(__gm__ float *)p5, (__gm__ float *)p6, (__gm__ float *)p7, (__gm__ float *)p8, (__gm__ float *)p9, "
        "(__gm__ float *)p10, (__gm__ float *)p11, p12" + ("" if earlier else ", nullptr") + ")",
        _bytes(
            4096, 2 * rows * head, 2 * columns * head, 2 * columns * head, slots * fifo * tile * 2,
            slots * fifo * 128 * 4, 4 * rows, 4 * rows, 4 * rows * head, 4 * rows * head,
            slots * fifo * tile * 4, slots * fifo * 128 * head * 4, 512 * 64,
        ),
        "mix", blocks, chip, role, **more,
    )  # fmt: skip


def attention() -> Iterator[Whole]:
    for s, micros in (
        (1024, 20.960), (2048, 32.461), (4096, 88.902), (8192, 292.626), (16384, 909.058), (32768, 3262.645),
    ):  # fmt: skip
        yield _attention(
            s, s, micros, B2, "test", f"{s} x {s}", long=s > 4096, method="ev", width=_tile_of(s),
            remark=f"q, k and v fetched before; tiles of {_tile_of(s)} columns",
        )  # fmt: skip


def attention_of_torch() -> Iterator[Whole]:
    """The kernel that is compiled at run time beside torch: the mean of 50 launches after 10, on an aarch64 and on an x86
    host."""
    for rows, arm, x86 in (
        (128, (19.200, 23.420, 38.317, 68.778), (16.54, 23.98, 40.94, 72.14)),
        (256, (18.604, 23.939, 39.838, 71.212), (16.77, 22.96, 40.43, 72.39)),
        (512, (18.603, 24.787, 41.475, 74.903), (18.03, 25.02, 41.21, 73.93)),
        (1024, (19.439, 26.221, 43.127, 76.855), (18.70, 26.76, 44.20, 77.65)),
        (2048, (23.424, 36.055, 59.690, 107.780), (23.27, 35.15, 58.43, 100.93)),
    ):
        blocks, fifo = rows // 128, 8
        slots = fifo * 128 * blocks
        for s1, one, other in zip((1024, 2048, 4096, 8192), arm, x86, strict=True):
            yield Whole(
                "flash attention, torch", f"{rows} x {s1}", (one + other) / 2, "demos/torch_jit/flash_atten/fa_kernel.cpp",
                f"runTFA<128, 128, 128, 256, 4, {fifo}, false, false, 1>((__gm__ uint64_t *)p0, (__gm__ half *)p1, "
                "(__gm__ half *)p2, (__gm__ half *)p3, (__gm__ half *)p4, (__gm__ float *)p5, (__gm__ float *)p6, "
                "(__gm__ float *)p7, (__gm__ float *)p8, (__gm__ float *)p9, (__gm__ float *)p10, (__gm__ float *)p11, "
                f"nullptr, nullptr, {rows}, {s1})",
                _bytes(
                    4096, 2 * rows * 128, 2 * s1 * 128, 2 * s1 * 128, 2 * slots * 256, 4 * slots, 4 * blocks * rows,
                    4 * blocks * rows, 4 * rows * 128, 4 * blocks * rows * 128, 4 * slots * 256, 4 * slots * 128,
                ),
                "mix", blocks, B2, "fit" if (rows, s1) == (2048, 8192) else "test", l2="warm", method="ev",
                remark="sets the turn of a flag between cores" if (rows, s1) == (2048, 8192) else "", commit="68b7cd17",
                headers="kernels/manual/common/flash_atten", spread=max(one, other) / min(one, other) - 1,
            )  # fmt: skip


def attention_by_cores() -> Iterator[Whole]:
    """One launch of the kernel of December 2025, timed by its own counter, nothing in L2 before; k and v of 1024 and 2048
    columns have small pages. Of 16 cores one time is published, beside that of the vendor's simulator."""
    columns = (1024, 2048, 4096, 8192)
    for rows, times in (
        (128, (42.08, 51.44, 43.80, 74.54)), (256, (33.201, 44.101, 43.521, 75.162)),
        (512, (41.721, 55.441, 46.621, 86.322)), (1024, (63.72, 85.882, 64.461, 107.342)), (2048, (0, 147.92, 0, 0)),
    ):  # fmt: skip
        for s1, micros in zip(columns, times, strict=True):
            if micros:
                role = "fit" if rows == 2048 else "test"
                yield _attention(
                    rows, s1, micros, A2, role, f"{rows} x {s1}", fifo=12, l2="cold", method="cnt", commit="6cc68238",
                    remark="sets the turn of a walk through the page table" if role == "fit" else "",
                )  # fmt: skip


def mx_gemm() -> Iterator[Whole]:
    folder = "kernels/manual/a5/matmul_{}_performance/mxmatmul_performance_kernel.cpp"
    for n, micros in ((2048, 38.3), (4096, 187.9), (6144, 602.0), (8192, 1474.9)):
        sizes = f"{n}, {n}, {n}, {n // 4}, {n}, {n // 8}"
        yield Whole(
            "GEMM mxfp8", f"{n}³", micros, folder.format("mxfp8"),
            f"MxMatmulPerformance<32, {sizes}, 128, 128, 256, 1, 4, 4, 1>(p0, p1, p2, p3, p4)",
            _bytes(2 * n * n, n * n, n * n, n * n // 32, n * n // 32), "aic", 32, A5, long=n > 4096,
        )  # fmt: skip
    for m, k, n, micros in (
        (2048, 2048, 2048, 42.5), (2048, 4096, 4096, 100.3), (4096, 1024, 8192, 122.6), (1024, 12288, 4096, 137.7),
        (2048, 8192, 8192, 348.9), (2040, 8192, 8100, 377.3),
    ):  # fmt: skip
        sizes = f"{m}, {k}, {n}, {-(-m // 1024) * 256}, {k}, {-(-n // 2048) * 256}"
        yield Whole(
            "GEMM mxfp4", f"{m} x {k} x {n}", micros, folder.format("mxfp4"),
            f"MxMatmulPerformance<32, {sizes}, 256, 256, 256, 1, 2, 2, 1>(p0, p1, p2, p3, p4)",
            _bytes(2 * m * n, m * k // 2, k * n // 2, m * k // 32, k * n // 32), "aic", 32, A5,
            role="fit" if (m, n) == (2048, 8192) else "test",
            remark="sets the passes of MMAD" if (m, n) == (2048, 8192) else "shared 4 x 8, as published for the last",
        )  # fmt: skip


def vector_add() -> Iterator[Whole]:
    """Add of 8192 x 8192 half as asc-devkit's add_high_performance describes it; the kernel is one of ours."""
    for chip, blocks, micros in ((A2, 48, (268.5, 264.02)), (A5, 64, (251.68, 247.67))):
        for buffers, published in zip((1, 2), micros, strict=True):
            yield Whole(
                "vector add", f"8192², {buffers} buffer{'s' * (buffers > 1)}", published, "",
                f"add<{buffers}>((__gm__ half *)p0, (__gm__ half *)p1, (__gm__ half *)p2, {blocks})",
                _bytes(*[2 * 8192 * 8192] * 3), "aiv", blocks, chip, l2="warm",
                remark="profiled after launches that warm the chip up",
            )  # fmt: skip


def points() -> list[Whole]:
    """Every point, in the order of the page."""
    groups = (
        gemm,
        gemm_ar,
        attention,
        attention_of_torch,
        attention_by_cores,
        vector_add,
        top_k,
        conv2d,
        mx_gemm,
    )
    return [point for group in groups for point in group()]
