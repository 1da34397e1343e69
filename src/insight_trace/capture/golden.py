"""Whether a run gave what the scene says it should."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from insight_trace.errors import JobError
from insight_trace.scene.live import LiveScene
from insight_trace.scene.tensors import difference


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """Passed or not, and the largest difference of each output."""

    passed: bool
    differences: tuple[tuple[str, float], ...]
    message: str = ""


def compare(live: LiveScene, case: str, args: Any, golden: Any, names: tuple[str, ...]) -> GoldenResult:
    """Compares outputs with the scene's tolerances, or by the scene's own compare_outputs."""
    cls = live.scene_class
    rtol, atol = float(getattr(cls, "RTOL", 1e-5)), float(getattr(cls, "ATOL", 1e-5))
    differences, wrong = [], []
    for name in names:
        largest, message = difference(name, getattr(args, name), getattr(golden, name), rtol, atol)
        differences.append((name, largest))
        wrong += [message] if message else []
    own = next((vars(c)["compare_outputs"] for c in cls.__mro__ if "compare_outputs" in vars(c)), None)
    if own is not None and own.__qualname__ != "SceneTestCase.compare_outputs":
        return _by_scene(live, own, case, args, golden, names, tuple(differences))
    return GoldenResult(not wrong, tuple(differences), "; ".join(wrong))


def _by_scene(
    live: LiveScene,
    own: Any,
    case: str,
    args: Any,
    golden: Any,
    names: tuple[str, ...],
    differences: tuple[tuple[str, float], ...],
) -> GoldenResult:
    given = {"test_args": args, "golden_args": golden, "output_names": list(names)}
    given["params"] = live.params(case)
    try:
        accepted = {k: v for k, v in given.items() if k in inspect.signature(own).parameters}
        own(live.scene_class(), **accepted)
    except AssertionError as error:
        return GoldenResult(False, differences, str(error).strip().splitlines()[0] if str(error) else "")
    except Exception as error:
        raise JobError(
            f"compare_outputs failed: {type(error).__name__}: {error}", where=str(live.scene.path)
        ) from error
    return GoldenResult(True, differences)
