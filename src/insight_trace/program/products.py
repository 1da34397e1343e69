"""Workspaces of a program's launches: each that was kept is simulated once more, recorded, and compared."""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from insight_trace.arguments.slots import Recorded, ReplayArguments, ReplaySlot, make_tensor
from insight_trace.dtypes import DType, dtype_named
from insight_trace.errors import InsightTraceError
from insight_trace.finding import Finding, Severity
from insight_trace.limits import cut, steer
from insight_trace.model import CoreType, Kernel, Payload, Role, Tier
from insight_trace.program.compile import AUTO_SYNC
from insight_trace.program.kernel_file import MEMBERS, PlannedKernel, keep_source
from insight_trace.program.launches import split_arguments
from insight_trace.program.run_kernel import replay_kernel
from insight_trace.program.session import Launched, ProgramOptions, Ran
from insight_trace.results import Result
from insight_trace.simulate.embedded.entry_link import tool
from insight_trace.simulate.embedded.toolchain import Toolchain
from insight_trace.simulate.embedded.typed_entry import ENTRY

_SLOTS = 47  # buffers that one launch may have
_CORES = {"cube": CoreType.AIC, "vector": CoreType.AIV}
_KINDS = {"aic": CoreType.AIC, "aiv": CoreType.AIV, "mix": CoreType.MIX}


class Product(Struct, frozen=True):
    """What became of one launch that was kept."""

    kernel: str
    workspace: Path | None = None
    directory: Path | None = None
    findings: tuple[str, ...] = ()
    error: str = ""


class ProgramResult(Result, Struct, frozen=True, eq=False):
    """How a program ended, what it launched, and the workspaces that were made of it."""

    code: int
    launches: tuple[Launched, ...]
    products: Mapping[str, Product]  # by the folder that a launch was kept in

    def summary(self) -> str:
        made = sum(product.workspace is not None for product in self.products.values())
        return f"exit code {self.code} · {len(self.launches):,} launches · {made} workspaces"

    def columns(self) -> Mapping[str, Any]:
        """One row per launch."""
        names = ("name", "blocks", "kind", "soc", "cycles", "us", "bound", "error")
        return {name: [getattr(one, name) for one in self.launches] for name in names}

    def data(self) -> dict[str, Any]:
        rows = []
        for one in self.launches:
            row = asdict(one)
            product = self.products.get(row.pop("job"))
            row["workspace"] = str(product.workspace) if product and product.workspace else None
            row["findings"] = list(product.findings) if product else None
            rows.append(row)
        return {"launches": rows}


def make_products(ran: Ran, options: ProgramOptions, output: Path | None) -> dict[str, Product]:
    """Workspaces of the launches that were kept, by the folder that they were kept in."""
    kept = [one for one in ran.launches if one.job and (Path(one.job) / "job.json").is_file()]
    if options.trace == "slowest":
        slowest: dict[str, Launched] = {}
        for one in kept:
            if one.kernel not in slowest or one.cycles > slowest[one.kernel].cycles:
                slowest[one.kernel] = one
        kept = list(slowest.values())
    if not kept:
        return {}
    root = output or Path("outputs") / f"exec_{datetime.datetime.now().strftime('%Y%m%d_%H%M%S_%f')[:-3]}"
    toolchain = Toolchain.find()
    made: dict[str, Product] = {}
    for one in kept:
        if sys.stderr.isatty():
            said = f"insight-trace: recording {cut(one.name)} ({len(made) + 1} of {len(kept)})"
            steer(sys.stderr, f"\r{said}\x1b[K\r")
        place = root / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', one.name)}_{one.number}"
        while place.exists():
            place = place.with_name(place.name + "_")
        made[one.job] = _product(one, options, place, toolchain)
    return made


def _product(one: Launched, options: ProgramOptions, place: Path, toolchain: Toolchain) -> Product:
    try:
        planned = planned_launch(Path(one.job), toolchain)
        replay = replay_kernel(
            planned,
            Path(one.file),
            target=one.target,
            output=place,
            origin=f"launch {one.number} of the program, at {one.file}:{one.line}",
            label=f"launch{one.number}",
            soc_version=one.soc,
            preset=options.preset,
            timing_only=options.timing_only,
            check=options.check or not options.timing_only,
            seconds=max(options.seconds, 300.0),
        )
    except InsightTraceError as error:
        return Product(one.name, error=str(error).splitlines()[0])
    shown = {Severity.ERROR, Severity.WARNING} if options.check else {Severity.ERROR}
    added = _has_auto_sync(Path(one.job))
    found = tuple(
        _said(finding, added)
        for finding in replay.findings
        if finding.severity in shown and (options.check or not (added and _about_the_scalar_unit(finding)))
    )
    return Product(one.name, place, replay.directory, found)


def _has_auto_sync(folder: Path) -> bool:
    """Whether the kernel of a launch was built with --cce-auto-sync, as libraries of kernels in AscendC are."""
    texts = json.loads((folder / "job.json").read_text(encoding="utf-8"))["texts"]
    return any(
        text and Path(text).read_bytes().rstrip().endswith(AUTO_SYNC.encode()) for text in texts if text
    )


def _about_the_scalar_unit(finding: Finding) -> bool:
    """A race of one core between its scalar unit and another pipe in a memory of its own."""
    return finding.category == "race" and "S" in finding.pipes and finding.memory != "GM"


def _said(finding: Finding, added: bool) -> str:
    text = f"{finding.places[0].file}: {finding}" if finding.places else str(finding)
    if added and _about_the_scalar_unit(finding):
        text += "; --cce-auto-sync, with which it is built, has the vendor's compiler add that wait"
    return text


def planned_launch(folder: Path, toolchain: Toolchain) -> PlannedKernel:
    """A launch that the runtime kept, as a kernel with arguments."""
    job: dict[str, Any] = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    words = bytes.fromhex(job["arguments"])
    words += bytes(-len(words) % 8)
    values = [int.from_bytes(words[at : at + 8], "little") for at in range(0, len(words), 8)]
    roles = dict(job["used"])
    types = _pointer_types(job["entry"])
    slots: list[ReplaySlot] = []
    for number, buffer in enumerate(job["buffers"][:_SLOTS]):
        start, size = buffer["address"], buffer["size"]
        at = [index for index, value in enumerate(values) if start <= value < start + max(size, 1)]
        dtype = _dtype_of(at, values, job["buffers"], types)
        if size % dtype.size:
            dtype = _plain()
        after = folder / f"{number}.after"
        role = {1: Role.INPUT, 2: Role.OUTPUT, 3: Role.INOUT}.get(roles.get(start, 0), Role.INPUT)
        tensor = make_tensor(
            number,
            dtype,
            (size // dtype.size,),
            Recorded(Payload(folder / buffer["before"], 0, size)),
            Tier.EXACT,
            role=role,
            expected=Payload(after, 0, size) if after.is_file() else None,
            name=buffer["name"],
            origin="the program",
        )
        # at the address that it had: arguments and buffers hold pointers to it
        slots.append(replace(tensor, address=start, buffer_size=buffer["room"]))
    kind = _KINDS[job["kind"]]
    sides = MEMBERS[kind][: 1 + job.get("lanes", 2)] if kind is CoreType.MIX else MEMBERS[kind]
    entry = (_CALLED if job["elsewhere"] else _WRAPPER).format(
        symbol=job["entry"], entry=ENTRY, count=max(1, len(values)), values=", ".join(f"{v}ull" for v in values),
        kernel=job["elsewhere"], types=", ".join(_argument_types(job["entry"])),
    )  # fmt: skip
    source = Path(job["file"])
    sources = {}
    for side in set(sides):
        text = Path(job["texts"][side == "vector"]).read_text(encoding="utf-8", errors="surrogateescape")
        sources[side] = keep_source(
            toolchain, f"{source.stem}_{side}", text + '\n# 1 "<entry of the launch>"\n' + entry
        )
    name = job["kernel"].split("<", 1)[0].split("::")[-1].strip()
    kernels = tuple(
        Kernel(name, sources[side], _CORES[side], include_dirs=(str(source.parent),), entry=ENTRY)
        for side in sides
    )
    return PlannedKernel(name, kernels, ReplayArguments(tuple(slots), job["blocks"]), ())


_WRAPPER = """
void insight_trace_launched(int64_t *packed) asm("{symbol}");
extern "C" __attribute__((no_sanitize("thread"))) void {entry}(int64_t *args) {{
    (void)args;
    uint64_t words[{count}] = {{{values}}};
    insight_trace_launched((int64_t *)words);
}}
"""
# a kernel that another source launches: what it is called with is in the entry point's name
_CALLED = """
extern "C" __attribute__((no_sanitize("thread"))) void {entry}(int64_t *args) {{
    (void)args;
    uint64_t words[{count}] = {{{values}}};
    std::apply([](auto... a) {{ {kernel}(a...); }}, *(std::tuple<{types}> *)words);
}}
"""
_NAMES = {
    "float": "float32", "half": "float16", "bfloat16_t": "bfloat16", "unsigned char": "uint8", "signed char": "int8",
    "char": "int8", "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32", "long": "int64",
    "unsigned long": "uint64",
}  # fmt: skip


def _plain() -> DType:
    found = dtype_named("uint8")
    assert found is not None
    return found


def _argument_types(symbol: str) -> list[str]:
    """The types of a launch's arguments, from the entry point's name."""
    text = tool(["c++filt", symbol]).strip()
    inside = text[text.rfind("}") + 1 :].removesuffix(">::call(insight_trace_program::Packed*)")
    return [part for part in split_arguments(inside) if part]


def _pointer_types(symbol: str) -> list[str]:
    """What the pointers among a launch's arguments point to, in order."""
    return [
        part.removesuffix("*").removesuffix(" const").strip()
        for part in _argument_types(symbol)
        if part.endswith("*")
    ]


def _dtype_of(at: list[int], values: list[int], buffers: list[dict[str, Any]], types: list[str]) -> DType:
    """The element type of a buffer; a tuple's members lie in memory the last one first."""
    spans = [(one["address"], one["address"] + max(one["size"], 1)) for one in buffers]
    pointers = [
        index for index, value in enumerate(values) if any(low <= value < high for low, high in spans)
    ]
    if len(pointers) != len(types) or not at:
        return _plain()
    name = types[len(pointers) - 1 - pointers.index(at[0])].split("::")[-1]
    return dtype_named(_NAMES.get(name, name)) or _plain()
