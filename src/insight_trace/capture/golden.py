"""Whether a run gave what the scene says it should."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

from insight_trace.errors import JobError
from insight_trace.model import Case
from insight_trace.scene.live import LiveScene
from insight_trace.scene.tensors import difference, tensor_array, tolerance


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """Whether something differs, the largest difference of each output, and how much was compared."""

    passed: bool
    differences: tuple[tuple[str, float], ...]
    message: str = ""
    compared: int = 0  # elements of outputs that the golden function changes, or that differ from it

    @property
    def verdict(self) -> str:
        """`passed` is said only of something: a golden that changes no output agrees with a run that does nothing."""
        return ("passed" if self.compared else "nothing compared") if self.passed else "failed"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a scene's golden function makes of the arguments, and which of them it changes by more than the tolerance."""

    args: Any
    changed: frozenset[str]


def expected(live: LiveScene, args: Any, case: Case, names: tuple[str, ...]) -> Expected | None:
    """Before the run, while `args` are as they were made. None: the scene has no golden function."""
    golden = live.compute_golden(args, case)
    if golden is None:
        return None
    # a scene that compares by itself has tolerances that we do not know
    rtol, atol = (0.0, 0.0) if _own_comparison(live) else _tolerances(live)
    changed = {
        name for name in names if difference(name, getattr(args, name), getattr(golden, name), rtol, atol)[1]
    }
    return Expected(golden, frozenset(changed))


def _tolerances(live: LiveScene) -> tuple[float, float]:
    cls, path = live.scene_class, live.scene.path
    rtol, atol = (tolerance(name, getattr(cls, name, None), path) for name in ("RTOL", "ATOL"))
    return rtol, atol


def _own_comparison(live: LiveScene) -> Any:
    """The scene's own compare_outputs, if it has one."""
    mro = live.scene_class.__mro__
    own = next((vars(c)["compare_outputs"] for c in mro if "compare_outputs" in vars(c)), None)
    return own if own is not None and own.__qualname__ != "SceneTestCase.compare_outputs" else None


def compare(live: LiveScene, case: str, args: Any, wanted: Expected, names: tuple[str, ...]) -> GoldenResult:
    """Compares outputs with the scene's tolerances, or by the scene's own compare_outputs."""
    rtol, atol = _tolerances(live)
    own = _own_comparison(live)
    differences, wrong, compared, golden = [], [], 0, wanted.args
    for name in names:
        largest, message = difference(name, getattr(args, name), getattr(golden, name), rtol, atol)
        differences.append((name, largest))
        wrong += [message] if message else []
        says_something = name in wanted.changed or message or (own is not None and largest)
        compared += tensor_array(name, getattr(args, name)).size if says_something else 0
    if own is not None:
        return _by_scene(
            live, own, case, args, golden, names, GoldenResult(True, tuple(differences), "", compared)
        )
    return GoldenResult(not wrong, tuple(differences), "; ".join(wrong), compared)


def _by_scene(
    live: LiveScene,
    own: Any,
    case: str,
    args: Any,
    golden: Any,
    names: tuple[str, ...],
    found: GoldenResult,
) -> GoldenResult:
    given = {"test_args": args, "golden_args": golden, "output_names": list(names)}
    given["params"] = live.params(case)
    try:
        accepted = {k: v for k, v in given.items() if k in inspect.signature(own).parameters}
        own(live.scene_class(), **accepted)
    except AssertionError as error:
        return replace(found, passed=False, message=str(error).strip().splitlines()[0] if str(error) else "")
    except Exception as error:
        raise JobError(
            f"compare_outputs failed: {type(error).__name__}: {error}", where=str(live.scene.path)
        ) from error
    return found
