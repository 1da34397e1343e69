"""What a replay was asked to do."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from insight_trace.arguments.overrides import Overrides
from insight_trace.errors import RequestError
from insight_trace.options import RunOptions, VendorOptions


class ReplayRequest(Struct, frozen=True):
    """One replay. Paths are the caller's; nothing is read before the replay runs."""

    scene: Path
    case: str | None = None
    func_ids: tuple[int, ...] = ()
    kernel: str | None = None
    kernel_source: Path | None = None
    # where the arguments come from: a dump, a spec, a recipe, or else a capture of the case
    dump_dir: Path | None = None
    dispatch_id: int | None = None
    task_id: int | None = None
    arg_spec: Path | None = None
    recipe: bool = False
    overrides: Overrides = field(default_factory=Overrides)
    options: RunOptions = field(default_factory=RunOptions)
    vendor: VendorOptions = field(default_factory=VendorOptions)
    # what to write
    output: Path | None = None
    build: str = ""  # the name of a PyPTO build, whose extern kernel is profiled: decides the usual workspace
    label: str | None = None  # of the named traces in the workspace; None: class, case, target, kernel
    collect: bool = True  # False: stop when the workspace is written
    force: bool = False  # replace a workspace that is there
    as_recorded: bool = False  # of a workspace: the text that it holds, not the files as they are now

    def __post_init__(self) -> None:
        if self.dump_dir is not None and not self.func_ids:
            raise RequestError(
                "--dump-dir needs --func-id: a dispatch is chosen by both its kernel and its id",
                hint="`insight-trace dump list DIR` shows func ids and dispatch ids",
            )
        sources = [self.dump_dir is not None, self.arg_spec is not None, self.recipe].count(True)
        if sources > 1:
            raise RequestError("choose one of --dump-dir, --arg-spec and --recipe")
        if self.dump_dir is None and self.dispatch_id is not None:
            raise RequestError(
                "--dispatch-id chooses from a dump: give --dump-dir",
                hint="`insight-trace capture SCENE -o DIR` makes one, `insight-trace dump list DIR` shows what it holds",
            )
