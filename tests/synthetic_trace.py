"""Small and large traces made to order, as a simulator would give them."""

from __future__ import annotations

import numpy as np

from insight_trace.model import Instructions, Pipe, Stall, Trace

KERNEL = """// A tiled softmax step: load a tile, scale, exponentiate, reduce, store.
#include <pto/pto-inst.hpp>
using namespace pto;

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *in = reinterpret_cast<__gm__ float *>(args[0]);
    __gm__ float *out = reinterpret_cast<__gm__ float *>(args[1]);
    for (int i = 0; i < tiles; ++i) {
        wait_flag(PIPE_V, PIPE_MTE2, buffer(i));
        TLOAD(x, GlobalTensor(in + i * step));
        set_flag(PIPE_MTE2, PIPE_V, buffer(i));
        wait_flag(PIPE_MTE2, PIPE_V, buffer(i));
        TMULS(y, x, scale);
        TEXP(y, y);
        TROWSUM(s, y, tmp);
        set_flag(PIPE_V, PIPE_MTE2, buffer(i));
        set_flag(PIPE_V, PIPE_MTE3, buffer(i));
        wait_flag(PIPE_V, PIPE_MTE3, buffer(i));
        TSTORE(GlobalTensor(out + i * step), y);
    }
}
"""
KERNEL_PATH = "kernels/aiv_softmax_step.cpp"
PC_BASE = 0x10F86000


class TraceBuilder:
    """Rows in program order; everything not given is as a reader leaves it when it does not know."""

    def __init__(self, mhz: float = 1850.0) -> None:
        self.mhz = mhz
        self.rows: list[tuple] = []
        self._tables: dict[str, dict[str, int]] = {"core": {}, "name": {}, "stack": {}}

    def _index(self, table: str, text: str) -> int:
        entries = self._tables[table]
        return entries.setdefault(text, len(entries))

    def add(
        self,
        pipe: Pipe,
        name: str,
        start: int,
        end: int,
        *,
        core: str = "core0.veccore0",
        detail: str = "",
        stack: str = "",
        pc: int | None = None,
        issue: int | None = None,
        moved: int = -1,
        partner: int = -1,
        stall: Stall = Stall.NONE,
        read_conflict: int = -1,
        write_conflict: int = -1,
        utilisation: float = -1.0,
    ) -> int:
        """Adds one execution and returns its row."""
        row = len(self.rows)
        self.rows.append(
            (
                self._index("core", core),
                int(pipe),
                self._index("name", name),
                self._index("stack", stack),
                PC_BASE + 4 * row if pc is None else pc,
                start,
                end,
                detail,
                start if issue is None else issue,
                moved,
                partner,
                int(stall),
                read_conflict,
                write_conflict,
                utilisation,
            )
        )
        return row

    def build(self, **facts: object) -> Trace:
        columns = list(zip(*self.rows, strict=True)) if self.rows else [()] * 15
        types = (
            np.uint16, np.uint8, np.uint16, np.uint32, np.uint64, np.int64, np.int64, None, np.int64,
            np.int64, np.int64, np.uint8, np.int32, np.int32, np.float32,
        )  # fmt: skip
        arrays = [
            list(column) if kind is None else np.array(column, kind)
            for column, kind in zip(columns, types, strict=True)
        ]
        keys = [
            *("core", "pipe", "name", "stack", "pc", "start", "end", "detail", "issue", "process_bytes"),
            *("partner", "stall", "read_conflict", "write_conflict", "utilisation"),
        ]
        tables = {
            "cores": tuple(self._tables["core"]),
            "names": tuple(self._tables["name"]),
            "stacks": tuple(self._tables["stack"]),
        }
        return Trace(
            instructions=Instructions(**tables, **dict(zip(keys, arrays, strict=True))),
            mhz=self.mhz,
            soc_version="Ascend910B1",
            **facts,  # type: ignore[arg-type]
        )


def flag_detail(source: str, target: str, event: int) -> str:
    return f"PIPE:{source},TRIGGERPIPE:{target},FLAGID:{event},"


class _VectorCore:
    """One vector core that runs the kernel above: in-order pipes, flags, a scalar unit that issues."""

    def __init__(self, builder: TraceBuilder, core: str, buffers: int, elements: int, conflict: int) -> None:
        self.builder, self.core, self.buffers = builder, core, buffers
        self.bytes = elements * 4
        self.repeats = max(1, self.bytes // 256)
        self.conflict = conflict
        self.clock = 100  # the scalar unit's
        self.free = dict.fromkeys((Pipe.MTE2, Pipe.VECTOR, Pipe.MTE3), 0)
        self.sets: dict[tuple[str, str, int], list[tuple[int, int]]] = {}

    def scalar(self, name: str, line: int, count: int, pc: int) -> None:
        for step in range(count):
            self.builder.add(
                Pipe.SCALAR, name, self.clock, self.clock + 1, core=self.core,
                stack=f"{KERNEL_PATH}:{line}", pc=pc + 4 * step,
                detail="dtype:S64,XD:X3=0x40,XN:X3=0x20,IMM:0x20,",
            )  # fmt: skip
            self.clock += 1

    def run(self, pipe: Pipe, name: str, line: int, cycles: int, pc: int, **facts) -> tuple[int, int]:
        issue = self.clock
        self.clock += 1
        start = max(issue + 1, self.free[pipe])
        end = start + cycles
        self.free[pipe] = end
        stall = Stall.PIPE if start > issue + 1 else Stall.NONE
        row = self.builder.add(
            pipe, name, start, end, core=self.core, issue=issue, stall=stall,
            stack=f"{KERNEL_PATH}:{line}", pc=pc, **facts,
        )  # fmt: skip
        return row, end

    def set(self, pipe: Pipe, source: str, target: str, event: int, line: int, pc: int) -> None:
        row, end = self.run(pipe, "SET_FLAG", line, 1, pc, detail=flag_detail(source, target, event))
        self.sets.setdefault((source, target, event), []).append((row, end))

    def wait(self, pipe: Pipe, source: str, target: str, event: int, line: int, pc: int) -> None:
        pending = self.sets.get((source, target, event))
        if not pending:
            return
        partner, raised = pending.pop(0)
        issue = self.clock
        self.clock += 1
        start = max(issue + 1, self.free[pipe])
        end = max(start, raised) + 1
        self.free[pipe] = end
        self.builder.add(
            pipe, "WAIT_FLAG", start, end, core=self.core, issue=issue, pc=pc, partner=partner,
            stall=Stall.FLAG if end > start + 1 else Stall.NONE, stack=f"{KERNEL_PATH}:{line}",
            detail=flag_detail(source, target, event),
        )  # fmt: skip

    def tile(self, index: int) -> None:
        buffer = index % self.buffers
        source, result = 0x0 + buffer * 0x8000, 0x10000 + buffer * 0x8000
        at = PC_BASE
        repeats = self.repeats
        vector = {"utilisation": 100.0, "read_conflict": 0, "write_conflict": 0}
        burst = self.bytes // 32
        self.scalar("ADD_IMM", 8, 3, at)
        self.wait(Pipe.MTE2, "VEC", "MTE2", buffer, 9, at + 16)
        self.run(
            Pipe.MTE2, "MOV_OUT_TO_UB_ALIGN", 10, 180 + self.bytes // 110, at + 20, moved=self.bytes,
            detail=f"dtype:B32,XD:X0=0x{source:x},XN:X1=0x{0x1000000 + index * self.bytes:x},"
            f"XM:X2=0x{(burst << 16) | 16:x},Src:OUT,Dst:UB,",
        )  # fmt: skip
        self.set(Pipe.MTE2, "MTE2", "VEC", buffer, 11, at + 24)
        self.wait(Pipe.VECTOR, "MTE2", "VEC", buffer, 12, at + 28)
        config = f"XT:X9=0x{(min(repeats, 255) << 56) | 0x0808:x},"
        self.run(
            Pipe.VECTOR, "VMULS", 13, 26 + repeats, at + 32, **vector,
            detail=f"dtype:F32,XD:X4=0x{result:x},XN:X5=0x{source:x},XM:X6=0x3e000000,{config}",
        )  # fmt: skip
        self.run(
            Pipe.VECTOR, "VEXP", 14, 31 + 2 * repeats, at + 36, **vector,
            detail=f"dtype:F32,XD:X4=0x{result:x},XN:X4=0x{result:x},{config}",
        )  # fmt: skip
        slow = repeats * self.conflict
        self.run(
            Pipe.VECTOR, "VADD", 15, 24 + repeats + slow, at + 40, utilisation=50.0,
            read_conflict=slow, write_conflict=0,
            detail=f"dtype:F32,XD:X7=0x{0x20000:x},XN:X4=0x{result:x},XM:X8=0x{result + 0x4000:x},{config}",
        )  # fmt: skip
        self.set(Pipe.VECTOR, "VEC", "MTE2", buffer, 16, at + 44)
        self.set(Pipe.VECTOR, "VEC", "MTE3", buffer, 17, at + 48)
        self.wait(Pipe.MTE3, "VEC", "MTE3", buffer, 18, at + 52)
        self.run(
            Pipe.MTE3, "MOV_UB_TO_OUT_ALIGN", 19, 150 + self.bytes // 100, at + 56, moved=self.bytes,
            detail=f"dtype:B32,XD:X0=0x{0x2000000 + index * self.bytes:x},XN:X4=0x{result:x},"
            f"XM:X2=0x{(burst << 16) | 16:x},Src:UB,Dst:OUT,",
        )  # fmt: skip


def softmax_trace(
    tiles: int = 8, *, buffers: int = 1, elements: int = 4096, conflict: int = 1, cores: int = 2, **facts
) -> Trace:
    """The kernel above on vector cores: every hardware fact that the columns can hold is there."""
    builder = TraceBuilder()
    for number in range(cores):
        core = _VectorCore(builder, f"core0.veccore{number}", buffers, elements, conflict)
        builder.add(
            Pipe.CACHEMISS, hex(PC_BASE), 90, 91, core=core.core, pc=PC_BASE, stack=f"{KERNEL_PATH}:5"
        )
        for index in range(tiles):
            core.tile(index)
    facts.setdefault("sources", {KERNEL_PATH: KERNEL.encode()})
    return builder.build(**facts)


def matmul_trace(steps: int = 6) -> Trace:
    """A cube core: loads to L0 in flight together, products, one way out."""
    builder = TraceBuilder()
    core = "core0.cubecore0"
    path = "kernels/aic_matmul.cpp"
    loaded = 200
    mac = 0
    for step in range(steps):
        builder.add(
            Pipe.MTE2, "MOV_OUT_TO_L1_MULTI_ND2NZ", loaded, loaded + 300, core=core, moved=32768,
            stack=f"{path}:20", pc=0x2000, detail="dtype:B16,XD:X0=0x0,XN:X1=0x1000,Src:OUT,Dst:L1,",
        )  # fmt: skip
        row = builder.add(
            Pipe.MTE2, "SET_FLAG", loaded + 299, loaded + 300, core=core, stack=f"{path}:21", pc=0x2004,
            detail=flag_detail("MTE2", "MTE1", step % 2),
        )  # fmt: skip
        loaded += 300
        builder.add(
            Pipe.MTE1, "WAIT_FLAG", loaded - 200, loaded + 1, core=core, partner=row, stall=Stall.FLAG,
            stack=f"{path}:22", pc=0x2008, detail=flag_detail("MTE2", "MTE1", step % 2),
        )  # fmt: skip
        for part in range(4):
            begin = loaded + 2 + part * 20
            builder.add(
                Pipe.MTE1, "LOAD_2D", begin, begin + 70, core=core, stack=f"{path}:24", pc=0x200C + 4 * part,
                detail=f"dtype:B16,XD:X2=0x{part * 0x2000:x},XN:X3=0x{part * 0x2000:x},Src:L1,Dst:L0A,",
            )  # fmt: skip
        row = builder.add(
            Pipe.MTE1, "SET_FLAG", loaded + 131, loaded + 132, core=core, stack=f"{path}:25", pc=0x2020,
            detail=flag_detail("MTE1", "CUBE", 0),
        )  # fmt: skip
        begin = max(mac, loaded + 133)
        builder.add(
            Pipe.CUBE, "WAIT_FLAG", mac, begin, core=core, partner=row, stall=Stall.FLAG, pc=0x2024,
            stack=f"{path}:26", detail=flag_detail("MTE1", "CUBE", 0),
        )  # fmt: skip
        builder.add(
            Pipe.CUBE, "MMAD", begin, begin + 520, core=core, stack=f"{path}:27", pc=0x2028,
            detail="dtype:F16,XD:X4=0x0,XN:X5=0x0,XM:X6=0x0,M:128,K:64,N:256,",
        )  # fmt: skip
        mac = begin + 520
    row = builder.add(
        Pipe.CUBE, "SET_FLAG", mac, mac + 1, core=core, stack=f"{path}:30", pc=0x202C,
        detail=flag_detail("CUBE", "FIXP", 0),
    )  # fmt: skip
    builder.add(
        Pipe.FIXP, "WAIT_FLAG", 300, mac + 2, core=core, partner=row, stall=Stall.FLAG, pc=0x2030,
        stack=f"{path}:31", detail=flag_detail("CUBE", "FIXP", 0),
    )  # fmt: skip
    builder.add(
        Pipe.FIXP, "FIX_L0C_TO_OUT", mac + 2, mac + 1300, core=core, moved=131072, stack=f"{path}:32",
        pc=0x2034, detail="dtype:F32,XD:X7=0x3000,XN:X4=0x0,Src:L0C,Dst:OUT,",
    )  # fmt: skip
    return builder.build()
