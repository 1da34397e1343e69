"""Each rule of MindStudio Insight is broken once, and the validator names it."""

import contextlib
import json
import os
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from insight_made_up import small_trace, trace_of

from insight_trace.__main__ import main
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.insight import RULES, open_trace, validate, validate_directory, write_insight_directory
from insight_trace.insight.container import BlockType, blocks_of, write_block

BIN = "visualize_data.bin"


@pytest.fixture
def directory(tmp_path):
    return write_insight_directory(small_trace(), tmp_path)


def _parts(path):
    with path.open("rb") as file:
        return [(BlockType(block.type), block.read(file), block.path) for block in blocks_of(path)]


def _rewrite(directory, parts):
    with (directory / BIN).open("wb") as file:
        for type_, payload, path in parts:
            write_block(file, type_, payload, path)


def _edit_trace(directory, edit):
    """Changes the events of trace.json and of the TRACE block alike."""
    document = json.loads((directory / "trace.json").read_text())
    changed = edit(document)
    text = json.dumps(document if changed is None else changed, separators=(",", ":")).encode()
    _put_trace(directory, text)


def _put_trace(directory, text):
    (directory / "trace.json").write_bytes(text)
    parts = _parts(directory / BIN)
    _rewrite(directory, [(BlockType.TRACE, text, ""), *parts[1:]])


def _edit_table(directory, wanted, edit):
    parts = []
    for type_, payload, path in _parts(directory / BIN):
        if type_ is wanted:
            table = json.loads(payload)
            edit(table)
            payload = json.dumps(table, separators=(",", ":")).encode()
        parts.append((type_, payload, path))
    _rewrite(directory, parts)


def _flip(directory, offset, replacement):
    data = bytearray((directory / BIN).read_bytes())
    data[offset : offset + len(replacement)] = replacement
    (directory / BIN).write_bytes(bytes(data))


# --- the ten rules ----------------------------------------------------------------------------------


def _source_size_counts_its_path(directory):
    data = (directory / BIN).read_bytes()
    for block in blocks_of(directory / BIN):
        if block.type == BlockType.SOURCE:
            size = block.size + block.padding + 4096
            data = data[: block.offset] + struct.pack("<Q", size) + data[block.offset + 8 :]
    (directory / BIN).write_bytes(data)


def _size_is_big_endian(directory):
    size = (directory / BIN).read_bytes()[:8]
    _flip(directory, 0, size[::-1])


def _table_of_instructions_comes_first(directory):
    parts = _parts(directory / BIN)
    _rewrite(directory, [parts[-1], *parts[:-1]])


def _a_block_is_empty(directory):
    with (directory / BIN).open("ab") as file:
        write_block(file, BlockType.API_FILE, b"")


def _a_block_is_larger_than_the_file(directory):
    last = blocks_of(directory / BIN)[-1]
    _flip(directory, last.offset, struct.pack("<Q", 1 << 40))


def _trace_is_an_array(directory):
    _edit_trace(directory, lambda document: document["traceEvents"])


def _args_stand_after_ph(directory):
    def edit(document):
        event = document["traceEvents"][-5]
        event["args"] = event.pop("args", {})

    _edit_trace(directory, edit)


def _a_brace_stands_after_the_last_ph(directory):
    def edit(document):
        document["traceEvents"][-1]["tid"] = "a}b"

    _edit_trace(directory, edit)


def _trace_is_no_json(directory):
    text = (directory / "trace.json").read_bytes()
    _put_trace(directory, text.replace(b'"ph":"X"', b'"ph":X', 1))


def _profiling_type_comes_last(directory):
    def edit(document):
        document["profilingType"] = document.pop("profilingType")

    _edit_trace(directory, edit)


def _flow_ends_with_f(directory):
    def edit(document):
        for event in document["traceEvents"]:
            if event["ph"] == "t":
                event["ph"] = "f"

    _edit_trace(directory, edit)


def _two_pairs_share_an_id(directory):
    def edit(document):
        for event in document["traceEvents"]:
            if "id" in event:
                event["id"] = "core0.veccore0_0"

    _edit_trace(directory, edit)


def _an_instruction_is_drawn_as_begin_and_end(directory):
    def edit(document):
        event = next(each for each in document["traceEvents"] if each["ph"] == "X")
        event["ph"] = "B"

    _edit_trace(directory, edit)


def _a_flag_never_ends(directory):
    def edit(document):
        events = document["traceEvents"]
        events.remove(next(each for each in events if each["ph"] == "E"))

    _edit_trace(directory, edit)


def _a_core_is_missing_in_the_table(directory):
    _edit_table(directory, BlockType.API_INSTR, lambda table: table["Cores"].pop())


def _a_file_has_no_source_block(directory):
    parts = _parts(directory / BIN)
    _rewrite(directory, [part for part in parts if part[2] != "/src/tile.hpp"])


def _there_is_no_table_of_instructions(directory):
    _rewrite(directory, _parts(directory / BIN)[:-1])


def _a_percentage_has_no_point(directory):
    def edit(table):
        table["Instructions"][0]["Vector Utilization Percentage"] = [-1, -1, -1]

    _edit_table(directory, BlockType.API_INSTR, edit)


def _a_count_is_too_large(directory):
    _edit_table(directory, BlockType.API_INSTR, lambda table: table["Instructions"][0].update(Cycles=[2**31]))


def _a_count_has_a_point(directory):
    _edit_table(
        directory, BlockType.API_FILE, lambda table: table["Files"][0]["Lines"][0].update(Cycles=[1.0])
    )


def _an_address_is_a_word(directory):
    _edit_table(directory, BlockType.API_INSTR, lambda table: table["Instructions"][1].update(Address="main"))


def _an_address_is_a_number(directory):
    _edit_table(directory, BlockType.API_INSTR, lambda table: table["Instructions"][1].update(Address=4096))


THE_TEN = [
    ("block-layout", _source_size_counts_its_path),
    ("block-layout", _size_is_big_endian),
    ("first-block", _table_of_instructions_comes_first),
    ("block-size", _a_block_is_empty),
    ("block-size", _a_block_is_larger_than_the_file),
    ("trace-object", _trace_is_an_array),
    ("trace-object", _args_stand_after_ph),
    ("trace-object", _a_brace_stands_after_the_last_ph),
    ("trace-object", _trace_is_no_json),
    ("profiling-type", _profiling_type_comes_last),
    ("flow-end", _flow_ends_with_f),
    ("flag-pairs", _two_pairs_share_an_id),
    ("flag-pairs", _an_instruction_is_drawn_as_begin_and_end),
    ("flag-pairs", _a_flag_never_ends),
    ("cores-and-files", _a_core_is_missing_in_the_table),
    ("cores-and-files", _a_file_has_no_source_block),
    ("cores-and-files", _there_is_no_table_of_instructions),
    ("column-kinds", _a_percentage_has_no_point),
    ("column-kinds", _a_count_is_too_large),
    ("column-kinds", _a_count_has_a_point),
    ("address-text", _an_address_is_a_word),
    ("address-text", _an_address_is_a_number),
]


# --- the other ways to fail -------------------------------------------------------------------------


def _a_link(directory):
    (directory / BIN).rename(directory / "real.bin")
    (directory / BIN).symlink_to("real.bin")


def _writable_by_others(directory):
    (directory / BIN).chmod(0o666)


def _bytes_follow(directory):
    with (directory / BIN).open("ab") as file:
        file.write(b"\xff" * 8)


def _many_zeros_follow(directory):
    with (directory / BIN).open("ab") as file:
        file.write(bytes(12))


def _the_last_block_is_cut(directory):
    os.truncate(directory / BIN, (directory / BIN).stat().st_size - 40)


def _a_table_comes_twice(directory):
    parts = _parts(directory / BIN)
    _rewrite(directory, [*parts, parts[-1]])


def _no_events(directory):
    _edit_trace(directory, lambda document: document["traceEvents"].clear())


def _an_unknown_phase(directory):
    def edit(document):
        document["traceEvents"][-1]["ph"] = "i"

    _edit_trace(directory, edit)


def _a_slice_without_thread(directory):
    def edit(document):
        next(each for each in document["traceEvents"] if each["ph"] == "X")["tid"] = ""

    _edit_trace(directory, edit)


def _a_flow_without_start(directory):
    def edit(document):
        events = document["traceEvents"]
        events.remove(next(each for each in events if each["ph"] == "s"))

    _edit_trace(directory, edit)


def _a_table_is_no_json(directory):
    parts = _parts(directory / BIN)
    _rewrite(directory, [*parts[:-1], (BlockType.API_INSTR, b"{nonsense", "")])


def _documents_differ(directory):
    path = directory / "trace.json"
    path.write_bytes(path.read_bytes().replace(b"VADD", b"VSUB"))


def _no_bin(directory):
    (directory / BIN).unlink()


OTHERS = [
    ("path", _a_link),
    ("path", _writable_by_others),
    ("trailing-bytes", _bytes_follow),
    ("trailing-bytes", _many_zeros_follow),
    ("truncated-block", _the_last_block_is_cut),
    ("repeated-block", _a_table_comes_twice),
    ("empty-timeline", _no_events),
    ("event-phase", _an_unknown_phase),
    ("event-place", _a_slice_without_thread),
    ("flow-pairs", _a_flow_without_start),
    ("table-size", _a_table_is_no_json),
    ("same-timeline", _documents_differ),
    ("files-present", _no_bin),
]


@pytest.mark.parametrize(
    ("rule", "break_it"), THE_TEN + OTHERS, ids=lambda each: getattr(each, "__name__", each)
)
def test_a_broken_rule_is_named(directory, capsys, rule, break_it):
    assert validate(directory) == []
    break_it(directory)
    broken = validate(directory)
    assert rule in {each.rule for each in broken}, broken
    assert main(["export", "--validate", str(directory)]) == 1
    told = capsys.readouterr().out
    assert f"broken     {rule}: " in told
    assert RULES[rule] in told


def test_every_rule_has_a_test_that_breaks_it():
    assert {rule for rule, _ in THE_TEN} == set(tuple(RULES)[:10])
    # test_details_page.py and test_memory_page.py break these
    elsewhere = {rule for rule in RULES if rule.startswith("details-")} | {"memory-page"}
    assert {rule for rule, _ in THE_TEN + OTHERS} == set(RULES) - elsewhere


def test_the_place_of_a_broken_event_is_said(directory):
    _an_unknown_phase(directory)
    last = len(json.loads((directory / "trace.json").read_text())["traceEvents"]) - 1
    assert any(each.where.endswith(f"event {last}") for each in validate(directory))


def test_up_to_eight_zero_bytes_may_follow(directory):
    with (directory / BIN).open("ab") as file:
        file.write(bytes(8))
    assert validate(directory) == []
    assert len(open_trace(directory / BIN).instructions) == len(small_trace().instructions)


def test_a_long_timeline_of_our_own_is_checked_where_it_begins_and_ends(tmp_path):
    rows = [
        {
            "name": "VADD",
            "start": 3 * row,
            "end": 3 * row + 2,
            "pc": 0x1000 + 4 * (row % 40),
            "detail": "x" * 60,
        }
        for row in range(20_000)
    ]
    directory = write_insight_directory(trace_of(rows), tmp_path)
    assert validate_directory(directory) == []
    _a_brace_stands_after_the_last_ph(directory)
    assert {each.rule for each in validate_directory(directory, own_output=True)} == {"trace-object"}


def test_only_a_valid_path_gives_exit_code_0(directory, capsys):
    assert main(["export", "--validate", str(directory / "trace.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["broken"] == []
    assert main(["export", "--validate", str(directory / BIN)]) == 0
    (directory / "empty.bin").write_bytes(b"")
    assert main(["export", "--validate", str(directory / "empty.bin")]) == 1


# --- reading what is broken -------------------------------------------------------------------------


def test_a_truncated_bin_gives_what_could_be_read_and_a_warning(tmp_path):
    rows = [{"name": "VADD", "start": 3 * row, "end": 3 * row + 2} for row in range(200)]
    directory = write_insight_directory(trace_of(rows), tmp_path, include_source=False)
    whole = (directory / "trace.json").stat().st_size
    os.truncate(directory / BIN, whole // 2)
    trace = open_trace(directory / BIN)
    assert 20 < len(trace.instructions) < 200
    assert any("cut off after event" in text for text in trace.warnings)


def test_two_trace_blocks_are_both_read(directory):
    parts = _parts(directory / BIN)
    other = parts[0][1].replace(b"core0.veccore0", b"core5.veccore0")
    _rewrite(directory, [parts[0], (BlockType.TRACE, other, ""), *parts[1:]])
    assert "core5.veccore0" in open_trace(directory / BIN).instructions.cores


def test_control_characters_in_names_survive(tmp_path):
    trace = trace_of(
        [{"name": "a\x00b\n\x1b", "start": 1, "end": 2, "detail": "\x00}\t{"}], names=("a\x00b\n\x1b",)
    )
    directory = write_insight_directory(trace, tmp_path)
    assert validate(directory) == []
    read = open_trace(directory)
    assert read.instructions.names == ("a\x00b\n\x1b",)
    assert read.instructions.detail == ["\x00}\t{"]


def test_text_that_is_no_unicode_is_replaced(tmp_path):
    trace = trace_of([{"name": "VADD", "start": 1, "end": 2, "detail": "\ud800x"}])
    assert open_trace(write_insight_directory(trace, tmp_path)).instructions.detail == ["?x"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "too few"),
        (b"PK\x03\x04" + bytes(40), "not 5a 5a"),
        (struct.pack("<QBBBB", 1 << 50, 2, 0, 0x5A, 0x5A), "claims 1125899906842624 bytes"),
        (struct.pack("<QBBBB", 8, 5, 0, 0x5A, 0x5A) + b"{}      ", "no TRACE block"),
        (struct.pack("<QBBBB", 8, 2, 0, 0x5A, 0x5A) + b"[1,2,3 ]", "event 0"),
        (struct.pack("<QBBBB", 8, 2, 0, 0x5A, 0x5A) + b"{}      ", "traceEvents"),
    ],
)
def test_a_file_that_is_no_container_is_an_error_with_its_place(tmp_path, content, words):
    path = tmp_path / "visualize_data.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        open_trace(path)
    assert str(path) in str(caught.value)


def test_a_json_error_names_the_event(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"profilingType":"op","traceEvents":[{"ph":"X","ts":1},{"ph":"X","ts":"soon"}]}')
    with pytest.raises(InputError, match="event 1"):
        open_trace(path)


@settings(max_examples=60)
@given(data=st.data())
def test_any_damage_gives_a_trace_or_an_error_and_never_a_crash(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    directory = write_insight_directory(small_trace(), folder)
    content = bytearray((directory / BIN).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, 40), st.integers(0, len(content) - 1)))
        content[place] = data.draw(st.integers(0, 255))
    (directory / BIN).write_bytes(bytes(content[: data.draw(st.integers(1, len(content)))]))
    validate(directory)
    with contextlib.suppress(InsightTraceError):
        open_trace(directory / BIN)
