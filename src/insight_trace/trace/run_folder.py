"""What `clean` leaves on disk: files beside a trace, or a run folder that explains itself."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from insight_trace.errors import InputError, RequestError
from insight_trace.insight.container import BlockType, blocks_of
from insight_trace.insight.locate import SHOWN_FOLDER
from insight_trace.limits import RECORD_BYTES
from insight_trace.model import Trace
from insight_trace.reading import load_json
from insight_trace.recording.frames import split_frame
from insight_trace.recording.kinds import works
from insight_trace.results import Result
from insight_trace.storage import refuse_existing, whole_directory, whole_file, whole_files
from insight_trace.trace.advice import advise
from insight_trace.trace.chrome import write_chrome
from insight_trace.trace.clean import Clean, clean
from insight_trace.trace.instr_metrics import write_metrics
from insight_trace.trace.other_simulators import forms_of, write_also
from insight_trace.trace.perfetto import write_perfetto
from insight_trace.trace.stats import Stats, stats
from insight_trace.trace.text import head_line, pipe_table

BUILD_OUTPUT = Path("build_output")  # where users of PyPTO look for results
_RAW_FILES = ("trace.json", "visualize_data.bin")
_CORE_FOLDER = re.compile(r"core\d+(\.\w+)?")


@dataclass(frozen=True, slots=True)
class CleanForm:
    """How the clean trace is written."""

    perfetto: bool = False
    gzip: bool = False

    @property
    def suffix(self) -> str:
        return ".clean" + (".pftrace" if self.perfetto else ".json") + (".gz" if self.gzip else "")


@dataclass(frozen=True, eq=False, repr=False)
class CleanResult(Result):
    """A clean trace, and the files that were written of it."""

    cleaned: Clean
    written: tuple[Path, ...]

    def summary(self) -> str:
        return clean_lines(self.cleaned)[0].partition(" ")[2].strip()

    def data(self) -> dict[str, Any]:
        cleaned, arrows = self.cleaned, self.cleaned.arrows
        return {
            "kept": len(cleaned.rows),
            "lanes": len(cleaned.lanes),
            "dropped": cleaned.dropped,
            "arrows": len(arrows.producer),
            "arrows_hidden": arrows.hidden,
            "arrows_unanchored": arrows.unanchored,
            "flags_unpaired": arrows.unpaired,
            "notes": list(cleaned.notes),
            "written": [str(path) for path in self.written],
        }


def clean_files(
    trace: Trace,
    path: Path,
    form: CleanForm,
    *,
    keep_scalar: bool,
    output: Path | None,
    below: Path | None,
    kernel: str | None,
    notes: Mapping[str, str],
    raw: bool,
    copy_raw: bool,
    also: str | None,
    force: bool,
) -> CleanResult:
    """Cleans a trace that was read from `path` and writes it into `output`, or where it was read."""
    forms = forms_of(also) if also is not None else ()
    cleaned = clean(trace, keep_scalar=keep_scalar)
    copied = raw_metrics(trace.path) if raw else None
    known = workspace_of(trace)
    # part of a file name: what cannot stand in one becomes an underscore
    name = re.sub(r"[^\w.+-]", "_", kernel or known.get("kernel") or kernel_name(trace))
    name = name.lstrip(".")[:120] or "trace"
    if below is not None and output is None:
        output = below / presentable_name(name, known.get("source") or kernel_name(trace))
    path = trace.path or path
    here = path if path.is_dir() else path.parent
    if output is None:
        written = list(beside(cleaned, here, form, raw=copied, force=force))
    else:
        written = run_folder(
            cleaned, output, form, kernel=name, provenance=notes, raw=copied, copy_raw=copy_raw, force=force
        )
    if forms:
        written += write_also(trace, output or here, name, forms, force=force)
    return CleanResult(cleaned, tuple(written))


def write_clean(cleaned: Clean, file: IO[bytes], form: CleanForm) -> None:
    """The clean trace in one of its forms; the same trace gives the same bytes."""
    write = write_perfetto if form.perfetto else write_chrome
    if not form.gzip:
        write(cleaned, file)
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
        write(cleaned, packed)  # type: ignore[arg-type]


def raw_metrics(path: Path | None) -> bytes:
    """The instruction table of a `visualize_data.bin`, byte for byte."""
    folder = path.parent if path else None
    bin_ = path if path and path.suffix == ".bin" else folder / "visualize_data.bin" if folder else None
    if bin_ is None or not bin_.is_file():
        raise RequestError(
            "--raw-metrics copies the table of a visualize_data.bin, and there is none here",
            hint="leave the flag out: the numbers are then worked out from the trace",
        )
    with bin_.open("rb") as file:
        for block in blocks_of(bin_):
            if block.type == BlockType.API_INSTR:
                return block.read(file)
    raise InputError("there is no API_INSTR block", where=str(bin_), hint="leave --raw-metrics out")


def beside(
    cleaned: Clean, folder: Path, form: CleanForm, *, raw: bytes | None, force: bool
) -> tuple[Path, Path]:
    """`trace.clean.*` and `instr_metrics.json` in a folder that exists."""
    target, table = folder / f"trace{form.suffix}", folder / "instr_metrics.json"
    if target.exists() and table.exists():  # one of them alone may be what a killed run got done
        refuse_existing(target, force=force)
    with _writable(folder), whole_files(folder, force=force) as place:
        with (place / target.name).open("wb") as file:
            write_clean(cleaned, file, form)
        with (place / table.name).open("wb") as file:
            _write_table(cleaned.trace, file, raw)
    return target, table


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise RequestError(f"{folder} cannot be written to", hint="name another place with -o") from error


def presentable_name(kernel: str, source: str) -> str:
    """`incore_<kernel>_<source>_<time>`, as PyPTO's skill calls such a folder."""
    words = (kernel, source.removeprefix("_jit_"))
    named = "_".join(re.sub(r"[^\w.+-]+", "-", word).strip("-.")[:80] for word in words)
    return f"incore_{named}_{datetime.datetime.now().strftime('%Y%m%d_%H%M%S')}"


def add_to_workspace(trace: Trace, workspace: Path, kernel: str, provenance: Mapping[str, str]) -> None:
    """The files of a run folder among those of a workspace."""
    with whole_files(workspace) as place:
        _fill(clean(trace), place, CleanForm(), kernel=kernel, provenance=provenance, raw=None, copy_raw=True)


def run_folder(
    cleaned: Clean,
    folder: Path,
    form: CleanForm,
    *,
    kernel: str,
    provenance: Mapping[str, str],
    raw: bytes | None,
    copy_raw: bool,
    force: bool,
) -> list[Path]:
    """`<kernel>.clean.*`, `instr_metrics.json`, `summary.txt` and `raw_simulator/`; whole or absent."""
    trace = cleaned.trace
    inputs = () if trace.path is None else (trace.path,)
    with whole_directory(folder, force=force, record=("instr_metrics.json",), inputs=inputs) as place:
        _fill(cleaned, place, form, kernel=kernel, provenance=provenance, raw=raw, copy_raw=copy_raw)
        names = sorted(path.name for path in place.iterdir())
    return [folder / name for name in names]


def _fill(
    cleaned: Clean,
    place: Path,
    form: CleanForm,
    *,
    kernel: str,
    provenance: Mapping[str, str],
    raw: bytes | None,
    copy_raw: bool,
) -> None:
    trace = cleaned.trace
    with whole_file(place / f"{kernel}{form.suffix}") as file:
        write_clean(cleaned, file, form)
    with whole_file(place / "instr_metrics.json") as file:
        _write_table(trace, file, raw)
    with whole_file(place / "summary.txt") as file:
        file.write(summary_text(trace, cleaned, stats(trace), kernel, provenance).encode())
    if copy_raw and trace.path is not None:
        _copy_raw(trace.path, place / "raw_simulator")


def _write_table(trace: Trace, file: IO[bytes], raw: bytes | None) -> None:
    if raw is None:
        write_metrics(trace, file)
    else:
        file.write(raw)


def _copy_raw(path: Path, target: Path) -> None:
    """The files of a simulator result and nothing else that lies beside them; links are not followed."""
    folder = path if path.is_dir() else path.parent
    target.mkdir()
    for item in sorted(folder.iterdir()):
        if item.is_symlink():
            continue
        if item.is_file() and item.name in _RAW_FILES:
            shutil.copyfile(item, target / item.name)
        elif item.is_dir() and (_CORE_FOLDER.fullmatch(item.name) or item.name == SHOWN_FOLDER):
            (target / item.name).mkdir()
            for part in sorted(item.iterdir()):
                if part.is_file() and not part.is_symlink():
                    shutil.copyfile(part, target / item.name / part.name)
    if path.is_file() and path.name not in _RAW_FILES:
        shutil.copyfile(path, target / path.name)


def workspace_of(trace: Trace) -> dict[str, str]:
    """Kernel and source of a trace that lies in a workspace of ours; nothing of another."""
    for folder in trace.path.resolve().parents[:5] if trace.path is not None else ():
        if (folder / "replay.json").is_file():
            record = load_json(folder / "replay.json", most=RECORD_BYTES)
            if isinstance(record, dict) and record.get("kernels"):
                kernel = record.get("name") or record["kernels"][0]["name"]
                return {"kernel": str(kernel), "source": Path(str(record["scene"]["path"] or kernel)).stem}
    return {}


def kernel_name(trace: Trace) -> str:
    """The kernel's name as far as the path or the sources tell; `trace` where they do not."""
    if trace.path is not None:
        parts = trace.path.resolve().parts
        if "funcs" in parts[:-1]:
            return parts[parts.index("funcs") + 1]
    names = {split_frame(path)[0].replace("\\", "/").rsplit("/", 1)[-1] for path in trace.sources}
    stems = sorted(re.sub(r"\W", "_", name.rsplit(".", 1)[0]) for name in names if name)
    return stems[0] if len(stems) == 1 else "trace"


def summary_text(
    trace: Trace, cleaned: Clean, figures: Stats, kernel: str, provenance: Mapping[str, str]
) -> str:
    """Where the trace comes from and what it says, in a page of text."""
    facts = {"kernel": kernel, "source": str(trace.path) if trace.path else "-", **provenance}
    if trace.sources:
        facts.setdefault("code", ", ".join(sorted(trace.sources)))
    width = max(map(len, facts))
    lines = [f"{key:<{width}}  {value}" for key, value in facts.items()]
    lines += ["", head_line(figures) if figures.cores else "nothing ran", "", *pipe_table(figures)]
    if figures.cores and not works(trace.instructions).any():
        lines += ["", "WARN  only scalar and sync instructions ran: a control input was probably zero"]
    lines += ["", *clean_lines(cleaned)]
    advice = advise(trace, figures)
    if advice:
        lines += ["", "what to fix first", *(f"{i}. {item.text}" for i, item in enumerate(advice, 1))]
    lines += [f"note  {note}" for note in cleaned.notes]
    return "\n".join(lines) + "\n"


def clean_lines(cleaned: Clean) -> list[str]:
    """What was kept and what was left out: nothing disappears without a count."""
    arrows = cleaned.arrows
    cores = len({lane.core for lane in cleaned.lanes})
    words = [
        f"{len(cleaned.rows):,} instructions on {len(cleaned.lanes)} lanes",
        f"of {cores} {'core' if cores == 1 else 'cores'}",
        f"· {len(arrows.producer):,} {'arrow' if len(arrows.producer) == 1 else 'arrows'}",
    ]
    lines = ["kept       " + " ".join(words)]
    if cleaned.dropped:
        left = " · ".join(f"{count:,} {reason}" for reason, count in cleaned.dropped.items())
        lines.append(f"left out   {left}")
    lost = [
        f"{count:,} {what}"
        for count, what in (
            (arrows.hidden, "flag pairs end on a lane that is not kept"),
            (arrows.unanchored, "have no instruction at one end"),
            (arrows.unpaired, "flags have no partner"),
        )
        if count
    ]
    if lost:
        lines.append("no arrow   " + " · ".join(lost))
    return lines
