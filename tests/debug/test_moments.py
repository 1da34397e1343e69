"""A moment shows what every memory held: bit for bit that of a run that is looked at there."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.debug import open_session
from insight_trace.debug.journal import GM, PAGE, Journal
from insight_trace.errors import RequestError
from insight_trace.simulate.embedded.journaling import JournalRequest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# a chip's part of a run over several chips waits for its peers: it cannot be replayed alone
SCENES = sorted({path.parent.name for path in EXAMPLES.glob("*/scene.py")} - {"several_chips"})


def hash_of(address: int, content: np.ndarray) -> int:
    """The sum that the engine makes of a memory's words (journal.cpp, hashed)."""
    padded = np.zeros((len(content) + 7) // 8 * 8, np.uint8)
    padded[: len(content)] = content
    words = padded.view(np.uint64)
    weight = np.arange(len(words), dtype=np.uint64) + np.uint64(address // 8 + 1)
    weight = (weight ^ weight >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    weight = (weight ^ weight >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return int((words * (weight | np.uint64(1))).sum(dtype=np.uint64))


def wrong_moments(session, folder, moments=200, seed=0):
    """Memories that differ from those of a run whose memories were hashed at these moments, and how many were compared."""
    rows = range(len(session.instructions))
    chosen = sorted(random.Random(seed).sample(rows, min(moments, len(rows))))
    folder.mkdir()
    run = session.run(journal=JournalRequest(folder, observed=chosen))
    assert run.failure is None
    journal, wrong = session.journal(), []
    observed = Journal(folder).observed
    assert sorted(set(observed["row"].tolist())) == chosen
    pages = journal.base_pages[0].tolist()
    for row, core, memory, wanted in observed.tolist():
        if memory == GM:
            got = sum(hash_of(page, journal.state(0, GM, page, page + PAGE, row)) for page in pages)
        else:
            end = int(max(journal.changes(core, memory).end, default=8))
            got = hash_of(0, journal.state(core, memory, 0, end, row))
        if got % 2**64 != wanted:
            wrong.append((row, core, memory))
    return wrong, len(observed), run


@pytest.mark.parametrize("name", SCENES)
def test_every_memory_at_any_moment_is_that_of_a_run_looked_at_there(name, workspaces, tmp_path):
    for number, workspace in enumerate(workspaces(name)):
        session = open_session(workspace)
        wrong, compared, run = wrong_moments(session, tmp_path / str(number))
        assert compared
        assert not wrong
        last = session.moment(len(session.instructions) - 1)
        for slot, content in run.buffers.items():
            region = next(r for r in session.recording.about["regions"] if r[0] == f"slot {slot}")
            begin, end = region[1], region[1] + len(content)
            known = session.journal().pages(begin, end)
            assert (last.bytes(0, GM, begin, end)[known] == content[known]).all()


def test_moments_of_the_other_family_are_exact_too(workspaces, tmp_path):
    for number, workspace in enumerate(workspaces("paged_attention", target="a5")):
        wrong, compared, _ = wrong_moments(open_session(workspace), tmp_path / str(number))
        assert compared
        assert not wrong


def test_stepping_back_and_forward_again_is_the_identity(workspaces):
    for workspace in workspaces("mixed_example"):
        session = open_session(workspace)
        dice = random.Random(1)
        for _ in range(40):
            here = session.moment(dice.randrange(len(session.instructions)))
            own = np.flatnonzero(session.instructions.core == here.core)
            count = dice.randrange(int(np.searchsorted(own, here.row)) + 1)
            there = here.step(-count)
            assert there.step(count) == here
            for core, memory in session.journal().memories:
                before = here.bytes(core, memory, 0, 4096) if memory != GM else b""
                after = there.step(count).bytes(core, memory, 0, 4096) if memory != GM else b""
                assert bytes(before) == bytes(after)


def test_a_run_that_is_too_long_for_one_journal_is_looked_at_in_windows(workspaces, tmp_path):
    (workspace,) = [w for w in workspaces("paged_attention") if "SF" in (w / "replay.json").read_text()]
    whole = open_session(workspace)
    whole.journal()
    folder = tmp_path / "window"
    folder.mkdir()
    first = len(whole.instructions) // 2
    assert whole.run(journal=JournalRequest(folder, first=first)).failure is None
    window = Journal(folder)
    assert window.first == first
    assert window.complete == len(whole.instructions)
    for row in range(first, len(whole.instructions)):
        for core, memory in whole.journal().memories:
            begin = int(whole.journal().changes(core, memory).begin.min())
            end = int(whole.journal().changes(core, memory).end.max())
            expected = whole.journal().state(core, memory, begin, end, row)
            assert (window.state(core, memory, begin, end, row) == expected).all()
    bounded = tmp_path / "bounded"
    bounded.mkdir()
    assert whole.run(journal=JournalRequest(bounded, most=1)).failure is None
    assert 0 < Journal(bounded).complete < len(whole.instructions)


def test_a_moment_past_the_end_or_another_folder_is_refused(workspaces, tmp_path):
    session = open_session(workspaces("vector_chain")[0])
    with pytest.raises(RequestError, match="there is no instruction"):
        session.moment(len(session.instructions))
    with pytest.raises(RequestError, match=r"replay\.json"):
        open_session(tmp_path)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(1, 20), st.integers(0, 5), st.binary(min_size=20, max_size=20)
        ),
        max_size=40,
    )
)
def test_the_state_is_what_applying_every_change_in_order_gives(changes):
    import json
    import tempfile

    from insight_trace.debug.journal import _ENTRY

    rows = sorted(row for _, _, row, _ in changes)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        content = b"".join(text[:length] for _, length, _, text in changes)
        entries, used = np.zeros(len(changes), _ENTRY), 0
        for number, (address, length, _, _) in enumerate(changes):
            entries[number]["address"], entries[number]["length"] = address, length
            entries[number]["row"], entries[number]["payload"] = rows[number], used
            used += length
        (folder / "entries").write_bytes(entries.tobytes())
        (folder / "contents").write_bytes(content)
        facts = {"first": 0, "complete": 6, "instructions": 6}
        (folder / "journal.json").write_text(json.dumps(facts))
        journal = Journal(folder)
        for row in range(-1, 6):
            plain, last = np.zeros(80, np.uint8), np.full(80, -1)
            for number, (address, length, _, text) in enumerate(changes):
                if rows[number] <= row:
                    plain[address : address + length] = np.frombuffer(text[:length], np.uint8)
                    last[address : address + length] = rows[number]
            assert (journal.state(0, 0, 0, 80, row) == plain).all()
            assert (journal.state(0, 0, 7, 31, row) == plain[7:31]).all()
            assert (journal.last_change(0, 0, 5, 70, row) == last[5:70]).all()
