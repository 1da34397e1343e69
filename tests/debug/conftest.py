"""Workspaces of the examples, replayed once for all tests that look into them."""

from pathlib import Path

import pytest

import insight_trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def replay_all(scene, folder, case=None, most=None, **options):
    """A workspace for each kind of dispatch of a scene's case."""
    capture = insight_trace.capture(scene, case=case, output=folder / "dump", golden=False)
    kinds = {}
    for dispatch in insight_trace.load_dump(capture.directory).dispatches:
        kinds.setdefault(dispatch.func_ids, dispatch)
    found = []
    for number, (func_ids, dispatch) in enumerate(list(kinds.items())[:most]):
        replay = insight_trace.replay(
            scene, case=case, func_id=func_ids, dump_dir=capture.directory, dispatch_id=dispatch.dispatch_id,
            simulator="embedded", output=folder / f"replay{number}", **options,
        )  # fmt: skip
        found.append(replay.workspace)
    return found


@pytest.fixture(scope="session")
def workspaces(tmp_path_factory):
    """The workspaces of an example's kernels, by the example's name."""
    known = {}

    def of(name, **options):
        key = (name, *sorted(options.items()))
        if key not in known:
            folder = tmp_path_factory.mktemp(name)
            known[key] = replay_all(EXAMPLES / name / "scene.py", folder, **options)
        return known[key]

    return of


@pytest.fixture(scope="session")
def wrong_softmax(tmp_path_factory):
    """Workspaces of the softmax kernel replayed from a good kernel's dump: by the name of the mistake, "" is none."""
    import shutil

    folder = tmp_path_factory.mktemp("wrong_softmax")
    source = EXAMPLES / "paged_attention"
    capture = insight_trace.capture(source / "scene.py", output=folder / "dump", golden=False)
    mistakes = {
        "": ("", ""),
        "wrong tile": ("TROWSUM(sum, weight, scratch)", "TROWSUM(sum, tile, scratch)"),
        "wrong op": ("TROWMAX(", "TROWSUM("),
        "race": ("wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);", ""),
        "nan": ("TEXP(weight, weight)", "TLOG(weight, weight)"),
        "truncated": (
            "TCVT(rounded, weight, RoundMode::CAST_ROUND)",
            "TCVT(rounded, weight, RoundMode::CAST_TRUNC)",
        ),
    }
    found = {}
    for name, (old, new) in mistakes.items():
        copy = folder / (name.replace(" ", "_") or "good")
        shutil.copytree(source, copy)
        kernel = copy / "kernels" / "softmax.cpp"
        text = kernel.read_text()
        assert old in text
        kernel.write_text(text.replace(old, new, 1) if old else text)
        replay = insight_trace.replay(
            copy / "scene.py", func_id=1, dump_dir=capture.directory, simulator="embedded",
            output=folder / f"{copy.name}_replay", check=name == "race",
        )  # fmt: skip
        found[name] = replay.workspace
    return found
