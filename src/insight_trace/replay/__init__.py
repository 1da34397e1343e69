"""Replay: one recorded dispatch, simulated again, checked against what was recorded, exported for Insight."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace import make_callable

if TYPE_CHECKING:
    from insight_trace.replay.replaying import Replay


def replay(
    scene: str | Path,
    *,
    case: str | None = None,
    func_id: int | tuple[int, ...] | None = None,
    dump_dir: str | Path | None = None,
    **options: Any,
) -> Replay:
    """Replays one dispatch of a scene; `options` are the fields of ReplayRequest.

    The result has `.directory`, `.instructions`, `.outputs`, `.checks` and `.findings`.
    """
    from insight_trace.replay.replaying import run_replay
    from insight_trace.replay.request import ReplayRequest

    ids = () if func_id is None else (func_id,) if isinstance(func_id, int) else tuple(func_id)
    dump = None if dump_dir is None else Path(dump_dir)
    return run_replay(ReplayRequest(Path(scene), case=case, func_ids=ids, dump_dir=dump, **options))


make_callable(__name__)
