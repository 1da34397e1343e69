"""What a replay was asked to do."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from insight_trace.arguments.overrides import Overrides
from insight_trace.errors import RequestError
from insight_trace.limits import BLOCKS, cut
from insight_trace.simulate.simulators import SimulatorOptions, require_known


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
    # how to run
    simulator: str = "auto"  # auto, embedded, msprof
    target: str | None = None  # None: from the platform or the scene's place
    platform: str | None = None
    preset: str = "device"
    soc_version: str | None = None
    any_target: bool = False  # run on a target that the scene does not name
    block_dim: int | None = None
    timing_only: bool = False
    check: bool = False  # look for what is wrong in the kernel
    l2: str | None = None  # what L2 holds at first: cold (None), warm, trace: what earlier dispatches left
    launch: str | None = None  # task (None): started by a scheduler; kernel: launched by itself
    mark_cost: bool = False  # TRACE_START and TRACE_STOP take the time that they take on a device
    seconds: float = 60.0
    # the vendor's simulator
    cann_home: Path | None = None
    cann_set_env: Path | None = None
    pto_isa_root: Path | None = None
    device: int = 0
    launch_count: int = 1
    timeout_minutes: int = 120
    hardware_blocks: int = 1
    # what to write
    output: Path | None = None
    label: str | None = None  # of the named traces in the workspace; None: class, case, target, kernel
    collect: bool = True  # False: stop when the workspace is written
    include_source: bool = True
    dump_logs: bool = False
    force: bool = False  # replace a workspace that is there

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
            raise RequestError("--dispatch-id chooses from a dump: give --dump-dir")
        if self.block_dim is not None and self.block_dim < 1:
            raise RequestError(f"--block-dim {self.block_dim}: a kernel runs in at least one block")
        if self.block_dim is not None and self.block_dim > BLOCKS:
            raise RequestError(
                f"--block-dim {cut(str(self.block_dim))}: at most {BLOCKS:,} blocks are replayed"
            )
        require_known(self.simulator)

    @property
    def for_simulators(self) -> SimulatorOptions:
        """The part that simulators read, as they name it."""
        return SimulatorOptions(
            self.soc_version,
            self.preset,
            self.timing_only,
            self.check,
            self.l2,
            self.launch == "kernel",
            self.mark_cost,
            self.seconds,
            cann_home=self.cann_home,
            cann_set_env=self.cann_set_env,
            pto_isa_root=self.pto_isa_root,
            hardware_blocks=self.hardware_blocks,
            launch_count=self.launch_count,
            timeout_minutes=self.timeout_minutes,
            device=self.device,
        )
