"""Scenes over several chips: windows and signals between them, the order of calls, dumps of each, and deadlocks."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from insight_trace import capture, load_dump
from insight_trace.capture import node_capture as node_run
from insight_trace.capture.node import Node, NodeCall, NodeMemory
from insight_trace.errors import JobError, RequestError
from insight_trace.scene.node_names import ChipTaskArgs, CommBufferSpec, TensorArgType

SCENE = Path(__file__).parents[2] / "examples" / "several_chips" / "scene.py"


@pytest.mark.parametrize(("case", "chips", "platform"), [("Chips2", 2, "a2a3sim"), ("Chips4", 4, "a5sim")])
def test_chips_add_up_what_all_of_them_show_and_leave_a_dump_each(
    case: str, chips: int, platform: str, tmp_path: Path
) -> None:
    run = capture(SCENE, case, output=tmp_path / "run", platform=platform)
    assert run.failure is None, run.failure
    assert run.golden is not None
    assert run.golden.passed
    assert run.tasks == chips
    about = json.loads((tmp_path / "run" / "node.json").read_text())
    assert about["partial"] is False
    assert about["callable_id_to_name"] == {"0": "sum_over_chips"}
    assert [call["rank"] for call in about["calls"]] == list(range(chips))
    for chip in range(chips):
        dispatches = load_dump(tmp_path / "run" / f"rank{chip}" / "d0").dispatches
        assert [d.func_ids for d in dispatches] == [(0,)]
    with pytest.raises(RequestError, match="every chip's call") as caught:
        load_dump(tmp_path / "run")
    assert "rank1/d0" in str(caught.value.hint)


def test_a_check_of_several_chips_is_refused_and_does_not_read_as_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from insight_trace.__main__ import main

    for words in (["check", str(SCENE)], ["capture", str(SCENE), "--check", "-o", str(tmp_path / "run")]):
        assert main(words) == 2
        shown = capsys.readouterr()
        assert "nothing was checked" in shown.err
        assert "0 errors" not in shown.out + shown.err


def test_chips_that_wait_for_each_other_are_told_apart_from_slow_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_run, "_PATIENCE_SECONDS", 1.0)
    run = capture(SCENE, "Deadlock", output=tmp_path / "run", seconds=100)
    assert run.failure is not None
    for chip in (0, 1):
        assert f"chip {chip}: deadlock: core0.veccore0 waits for the signal" in run.failure.message
        assert f"in chip {chip}'s window of domain sum to be >= 1" in run.failure.message
    assert run.failure.where.endswith("sum_over_chips.cpp:40")
    assert run.seconds < 60


def test_the_output_of_another_run_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("kept")
    with pytest.raises(RequestError):
        capture(SCENE, "Chips2", output=tmp_path / "run")
    with pytest.raises(RequestError):
        capture(SCENE, "Chips2", output=tmp_path / "run", force=True)
    assert (tmp_path / "run" / "mine").read_text() == "kept"


def test_a_failing_orchestration_is_named_with_its_line(tmp_path: Path) -> None:
    text = SCENE.read_text().replace(
        "workers=list(range(chips)),\n        window_size", "workers=[7],\n        window_size"
    )
    scene = _copy(tmp_path, text)
    with pytest.raises(JobError, match="there is no chip 7") as caught:
        capture(scene, "Chips2", output=tmp_path / "run")
    assert "scene.py" in str(caught.value.where)
    assert not (tmp_path / "run").exists()


def test_what_a_node_does_not_have_is_refused_by_name(tmp_path: Path) -> None:
    text = SCENE.read_text().replace(
        "    chips = int(args.chips.value)\n", "    orch.create_worker_chip_queue(worker_id=0)\n"
    )
    scene = _copy(tmp_path, text)
    with pytest.raises(RequestError, match="create_worker_chip_queue"):
        capture(scene, "Chips2", output=tmp_path / "run")


def _copy(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "scene"
    folder.mkdir()
    for name in ("orchestration.cpp", "kernels"):
        (folder / name).symlink_to(SCENE.parent / name)
    (folder / "scene.py").write_text(text)
    return folder / "scene.py"


# --- the order of calls


def _call(number: int, *chips: int, after: tuple[int, ...] = ()) -> NodeCall:
    return NodeCall(number, None, tuple((chip, ChipTaskArgs()) for chip in chips), frozenset(after))


def _started(waiting: list[NodeCall], done: set[int], busy: set[int]) -> list[int]:
    return [call.number for call in node_run._startable(waiting, done, busy)]


def test_a_group_starts_when_all_its_chips_are_free_and_keeps_them_from_later_calls() -> None:
    calls = [_call(0, 1, 2), _call(1, 2), _call(2, 0)]
    assert _started(calls, set(), {1}) == [2]
    assert _started(calls, set(), set()) == [0, 2]


def test_calls_of_one_chip_start_in_the_order_of_their_submission() -> None:
    assert _started([_call(0, 0), _call(1, 0)], set(), set()) == [0]


def test_a_call_that_waits_for_another_keeps_nobody() -> None:
    assert _started([_call(1, 0, after=(0,)), _call(2, 0)], set(), set()) == [2]
    assert _started([_call(1, 0, after=(0,)), _call(2, 0)], {0}, set()) == [1]


@pytest.fixture
def node():  # type: ignore[no-untyped-def]
    memory = NodeMemory(3)
    yield Node(memory)
    memory.close()


def _args(*tensors: tuple[object, TensorArgType]) -> ChipTaskArgs:
    args = ChipTaskArgs()
    for tensor, tag in tensors:
        args.add_tensor(tensor, tag)
    return args


def test_a_reader_waits_for_writers_of_the_same_bytes_and_a_writer_for_nobody(node: Node) -> None:
    buffer = node.create_buffer(4096)
    low, high = buffer.tensor((16,), 0), buffer.tensor((16,), 0, byte_offset=1024)
    node.submit_next_level("a", _args((low, TensorArgType.OUTPUT_EXISTING)), worker=0)
    node.submit_next_level("b", _args((high, TensorArgType.INOUT)), worker=1)
    node.submit_next_level("c", _args((low, TensorArgType.INPUT)), worker=2)
    node.submit_next_level("d", _args((low, TensorArgType.OUTPUT_EXISTING)), worker=2)
    node.submit_sub(print, _args((low, TensorArgType.INPUT), (high, TensorArgType.INPUT)))
    node.submit_sub(print, _args((low, TensorArgType.NO_DEP)))
    assert [sorted(call.after) for call in node.calls] == [[], [], [0], [], [0, 1, 3], []]


def test_every_buffer_has_an_identity_of_its_own(node: Node) -> None:
    first, second = node.create_buffer(256).identity, node.create_buffer(256).identity
    assert len(first.owner_instance_id) == 8
    assert first.owner_instance_id == second.owner_instance_id
    assert first.buffer_id != second.buffer_id
    assert first.generation == 1


def test_windows_of_a_domain_are_zero_carved_without_gaps_and_known_to_every_rank(node: Node) -> None:
    specs = [CommBufferSpec("data", nbytes=100), CommBufferSpec("flags", nbytes=8)]
    with node.allocate_domain(name="d", workers=[2, 0], window_size=4096, buffers=specs) as domain:
        assert (domain[2].domain_rank, domain[0].domain_rank) == (0, 1)
        own = domain[0]
        assert own.buffers["flags"].base == own.local_window_base + 100
        assert bytes(node.memory.view(own.buffers["data"])) == bytes(100)
        context = next(w for w in node.windows if w.base == own.device_ctx)
        words = struct.unpack("<QQIIQ128Q", node.memory.view(context))
        assert words[2:5] == (1, 2, 4096)
        assert words[5:7] == (domain[2].local_window_base, own.local_window_base)
    too_small = node.allocate_domain(name="e", workers=[0], window_size=50, buffers=specs)
    with pytest.raises(ValueError, match="need more than its window"), too_small:
        pass


def test_a_group_needs_as_many_different_chips_as_members(node: Node) -> None:
    with pytest.raises(ValueError, match="different workers"):
        node.submit_next_level_group("a", [ChipTaskArgs(), ChipTaskArgs()], workers=[1, 1])


def test_a_function_on_the_host_sees_the_tensors_and_its_failure_ends_the_run(node: Node) -> None:
    buffer = node.create_buffer(64)
    node.memory.view(buffer)[:4] = struct.pack("<f", 2.5)
    seen: list[float] = []

    def look(args: list[object]) -> None:
        seen.append(float(args[0][0]))  # type: ignore[index]
        raise RuntimeError("not what was expected")

    node.submit_sub(look, _args((buffer.tensor((1,), 0), TensorArgType.INPUT)))
    run = node_run.drain(node, {}, lambda *_: pytest.fail("no chip was asked"))
    assert seen == [2.5]
    assert run.failure is not None
    assert "not what was expected" in run.failure.message


def test_names_of_a_scene_are_bound_to_its_own_tensors() -> None:
    from insight_trace.scene import node_names

    args = SimpleNamespace(a=object(), hosted={"a": SimpleNamespace(whole=lambda: "whole a")})
    assert node_names._rehosted_ref_for(args, args.a) == "whole a"
    with pytest.raises(ValueError, match="no argument"):
        node_names._rehosted_ref_for(args, object())
