"""From one kernel dispatch observed at run time to a trace that opens in MindStudio Insight.

Every command is one of these functions and printing (docs/python.md). Names are loaded when they are first used, so that
`import insight_trace` costs nothing.
"""

from __future__ import annotations

# Nothing is imported here: an interruption meanwhile would come before there is somebody to report it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from insight_trace.api.correctness import check as check
    from insight_trace.api.correctness import diverge as diverge
    from insight_trace.api.correctness import open_session as open_session
    from insight_trace.api.correctness import why as why
    from insight_trace.api.data import capture as capture
    from insight_trace.api.data import diff_dumps as diff_dumps
    from insight_trace.api.data import dump_entries as dump_entries
    from insight_trace.api.data import export_dump as export_dump
    from insight_trace.api.projects import calibrate as calibrate
    from insight_trace.api.projects import demo as demo
    from insight_trace.api.projects import doctor as doctor
    from insight_trace.api.projects import gate as gate
    from insight_trace.api.projects import new as new
    from insight_trace.api.projects import runs as runs
    from insight_trace.api.simulation import list_kernels as list_kernels
    from insight_trace.api.simulation import profile as profile
    from insight_trace.api.simulation import replay as replay
    from insight_trace.api.simulation import replay_all as replay_all
    from insight_trace.api.simulation import run as run
    from insight_trace.api.simulation import run_program as run_program
    from insight_trace.api.simulation import time_op as time_op
    from insight_trace.api.simulation import time_table as time_table
    from insight_trace.api.timing import Candidate as Candidate
    from insight_trace.api.timing import Timings as Timings
    from insight_trace.api.timing import op_variants as op_variants
    from insight_trace.api.timing import time_many as time_many
    from insight_trace.api.timing import variants as variants
    from insight_trace.api.traces import clean as clean
    from insight_trace.api.traces import compare as compare
    from insight_trace.api.traces import export as export
    from insight_trace.api.traces import query as query
    from insight_trace.api.traces import stats as stats
    from insight_trace.api.traces import table as table
    from insight_trace.api.traces import validate as validate
    from insight_trace.api.traces import view as view
    from insight_trace.capture.session import Capture as Capture
    from insight_trace.dump.load import load_dump as load_dump
    from insight_trace.guard import diff as diff
    from insight_trace.insight.reader import open_trace as open_trace
    from insight_trace.judge import judge as judge
    from insight_trace.model import Trace as Trace
    from insight_trace.outcome import Simulation as Simulation
    from insight_trace.profile.profile_run import ProfileResult as ProfileResult
    from insight_trace.program.run_kernel import kernel as kernel
    from insight_trace.replay.examine import CheckResult as CheckResult
    from insight_trace.replay.replaying import Replay as Replay
    from insight_trace.run.baseline import GateResult as GateResult
    from insight_trace.run.bulk_replay import ReplayAllResult as ReplayAllResult
    from insight_trace.run.run_tables import RunResult as RunResult
    from insight_trace.scene.live import load_scene_live as load_scene_live
    from insight_trace.scene.static import load_scene as load_scene
    from insight_trace.simulate import simulate as simulate
    from insight_trace.trace.compare import Comparison as Comparison
    from insight_trace.trace.text import StatsResult as StatsResult

__version__ = "0.1.0"

# module -> the functions in it
_FUNCTIONS_IN: dict[str, str] = {
    "api.data": "capture dump_entries export_dump diff_dumps",
    "api.simulation": "replay replay_all profile list_kernels run run_program time_op time_table",
    "api.timing": "time_many variants op_variants",
    "api.traces": "stats compare table query view clean validate export",
    "api.correctness": "check open_session why diverge",
    "api.projects": "gate calibrate runs demo doctor new",
    "simulate": "simulate",
    "guard": "diff",
    "judge": "judge",
    "program.run_kernel": "kernel",
    "insight.reader": "open_trace",
    "dump.load": "load_dump",
    "scene.static": "load_scene",
    "scene.live": "load_scene_live",
}
# module -> what they return
_TYPES_IN: dict[str, str] = {
    "api.timing": "Candidate Timings",
    "capture.session": "Capture",
    "replay.examine": "CheckResult",
    "trace.compare": "Comparison",
    "run.baseline": "GateResult",
    "profile.profile_run": "ProfileResult",
    "replay.replaying": "Replay",
    "run.bulk_replay": "ReplayAllResult",
    "run.run_tables": "RunResult",
    "outcome": "Simulation",
    "trace.text": "StatsResult",
    "model": "Trace",
}
# name -> the module that it is in
FUNCTIONS, _TYPES = (
    {name: f"insight_trace.{module}" for module, names in table.items() for name in names.split()}
    for table in (_FUNCTIONS_IN, _TYPES_IN)
)

__all__ = ["__version__", *FUNCTIONS, *_TYPES]


def __getattr__(name: str) -> Any:
    module = FUNCTIONS.get(name) or _TYPES.get(name)
    if module is None:
        raise AttributeError(f"module 'insight_trace' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def make_callable(package: str) -> None:
    """Lets a package be called like the function that it is named for: `insight_trace.simulate(...)`.

    Package and function share one name here; whichever was imported first, both uses work.
    """
    import sys
    import types

    class CallablePackage(types.ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.__wrapped__(*args, **kwargs)

        @property
        def __wrapped__(self) -> Any:
            """The function, also for who asks for its signature."""
            return __getattr__(self.__name__.rpartition(".")[2])

        @property
        def __signature__(self) -> Any:
            import inspect

            return inspect.signature(self.__wrapped__)

    sys.modules[package].__class__ = CallablePackage
