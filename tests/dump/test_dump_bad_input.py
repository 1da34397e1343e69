"""Broken dumps: one clear error that names file, record and key, or a warning and the rest."""

import json
import resource
import subprocess
import sys

import pytest
from dump_examples import record, scalar, write
from hypothesis import given
from hypothesis import strategies as st

from insight_trace import load_dump
from insight_trace.__main__ import main
from insight_trace.dump.entries import dispatch_json
from insight_trace.errors import InputError, InsightTraceError
from insight_trace.model import Payload


def reads_or_names_the_file(path):
    """Whatever the file holds: dispatches, or an error that names it; never a traceback."""
    try:
        for dispatch in load_dump(path).dispatches:
            json.dumps(dispatch_json(dispatch))
    except InsightTraceError as error:
        return path.name in str(error)
    return True


def error_of(path):
    with pytest.raises(InputError) as caught:
        list(load_dump(path).dispatches)
    text = str(caught.value)
    assert path.name in text, "the error names the file"
    return text


@pytest.mark.parametrize(
    "text", ["", " ", "not json", "[1, 2]", "nul", "{]", '{"args": 5}', "\x00\xff", "{}"]
)
def test_what_is_no_manifest_is_one_error(text, tmp_path):
    path = tmp_path / "args_dump.json"
    path.write_text(text)
    error_of(path)


def test_a_manifest_that_is_cut_off_says_so(tmp_path):
    path = write(tmp_path, [record(task_id=n) for n in range(40)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "cut off" in error_of(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    key=st.sampled_from([*record(), "value", "bits", "pointer", "raw_shape", "dispatch"]), value=json_values
)
def test_no_value_of_any_key_gives_a_traceback(key, value, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("any"), [record(), scalar(1) | {key: value}, record(**{key: value})])
    assert reads_or_names_the_file(path)


@given(
    key=st.sampled_from(
        ["arg_index", "kind", "dtype", "shape", "strides", "value", "bits", "pointer", "before"]
    ),
    value=json_values,
)
def test_no_value_in_a_per_dispatch_file_gives_a_traceback(key, value, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "kernel_args_dump.json"
    args = [
        {"arg_index": n, "kind": kind, "dtype": "FLOAT32", "shape": [2]}
        for n, kind in enumerate(["tensor", "scalar"])
    ]
    for arg in args:
        entry = {"task_id": 1, "args": [arg | {key: value}]}
        path.write_text(json.dumps({"dispatches": [entry]}))
        assert reads_or_names_the_file(path)


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"args":['])
def test_deep_nesting_is_refused_without_taking_memory(opening, tmp_path):
    path = tmp_path / "args_dump.json"
    path.write_text(opening * 2_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error_of(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 4 * path.stat().st_size + (16 << 20)


# Of a process of its own: ru_maxrss would begin with what the process had that started it.
PEAK = """\
def peak():
    words = open("/proc/self/status").read().split()
    return int(words[words.index("VmHWM:") + 1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sparse files and address-space limits")
def test_four_gigabytes_of_nesting_are_refused_within_little_memory(tmp_path):
    path = tmp_path / "args_dump.json"
    with path.open("wb") as file:
        file.write(b"[" * 4096)
        file.truncate(4 << 30)  # the rest is sparse: only what is looked at is read
    code = (
        PEAK + "import sys\nfrom insight_trace.__main__ import main\n"
        "status = main(['dump', 'list', sys.argv[1]])\n"
        "print(peak())\nsys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert int(done.stdout.split()[-1]) < 300_000


@pytest.mark.parametrize(
    ("broken", "key"),
    [
        ({"shape": [-1]}, "shape"),
        ({"shape": [2**32]}, "shape"),
        ({"shape": [2**70]}, "shape"),
        ({"shape": [2**31, 2**31, 2**31], "strides": [1, 1, 1]}, "shape"),
        ({"shape": [1, 1, 1, 1, 1, 1], "strides": [1] * 6}, "shape"),
        ({"shape": [2, 2], "strides": [1]}, "strides"),
        ({"strides": [-1]}, "strides"),
        ({"arg_index": -1}, "arg_index"),
        ({"arg_index": 50}, "arg_index"),
        ({"arg_index": "x"}, "arg_index"),
        ({"bin_size": -4}, "bin_size"),
        ({"bin_offset": -4}, "bin_offset"),
        ({"bin_offset": 2**64}, "bin_offset"),
        ({"start_offset": -1}, "start_offset"),
        ({"stage": "during"}, "stage"),
        ({"role": "spectator"}, "role"),
        ({"kind": "riddle"}, "kind"),
        ({"task_id": "0xzz"}, "task_id"),
        ({"task_id": -3}, "task_id"),
        ({"raw_shape": [4, 4], "offsets": [0], "strides": ...}, "raw_shape"),
    ],
    ids=str,
)
def test_a_broken_record_is_named_with_its_key(broken, key, tmp_path):
    records = [record(task_id=n) for n in range(3)] + [record(task_id=3) | broken]
    records[3] = {k: v for k, v in records[3].items() if v is not ...}
    text = error_of(write(tmp_path, records))
    assert "args[3]" in text
    assert f"key {key}" in text


@pytest.mark.parametrize(
    ("value", "name"), [(2**64, "UINT64"), (-1, "UINT32"), ("x", "FLOAT32"), (1.5, "INT32")]
)
def test_a_scalar_that_fits_no_slot_is_named(value, name, tmp_path):
    text = error_of(write(tmp_path, [record(), scalar(value, name, arg_index=1)]))
    assert "args[1], key value" in text


def test_an_error_far_into_a_large_manifest_names_the_right_record(tmp_path):
    records = [record(task_id=n) for n in range(9000)]
    records[8765]["shape"] = [-1]
    assert "args[8765], key shape" in error_of(write(tmp_path, records))


@pytest.mark.parametrize("name", ["../args.bin", "/etc/passwd", "a/b.bin", "..", "", "a\\b", 7])
def test_a_payload_file_outside_the_dump_is_refused(name, tmp_path):
    (tmp_path / "args.bin").write_bytes(bytes(16))
    path = write(tmp_path / "dump", [record(bin_size=16)], bin_file=name)
    assert "key bin_file" in error_of(path)


def test_a_payload_outside_its_file_is_left_aside_with_a_warning(tmp_path):
    records = [record(bin_size=16, bin_offset=0), record(arg_index=1, bin_size=16, bin_offset=8)]
    dump = load_dump(write(tmp_path, records, payload=bytes(16)))
    inside, outside = dump.dispatches[0].arguments
    assert isinstance(inside.before, Payload)
    assert outside.before is None
    assert any("args[1], key bin_offset" in w and "outside" in w for w in dump.warnings)


def test_a_payload_at_the_end_of_the_number_range_does_not_wrap_around(tmp_path):
    dump = load_dump(write(tmp_path, [record(bin_size=16, bin_offset=2**63 - 1)], payload=bytes(16)))
    assert dump.dispatches[0].arguments[0].before is None
    assert any("outside" in w for w in dump.warnings)


def test_payloads_that_overlap_are_warned_of(tmp_path):
    records = [record(bin_size=16, bin_offset=8), record(arg_index=1, bin_size=16, bin_offset=0)]
    dump = load_dump(write(tmp_path, records, payload=bytes(24)))
    assert any("args[0], key bin_offset: its payload overlaps" in w for w in dump.warnings)


def test_a_payload_of_the_wrong_size_is_left_aside_with_a_warning(tmp_path):
    dump = load_dump(write(tmp_path, [record(bin_size=12), record(task_id=2)], payload=bytes(16)))
    assert dump.dispatches[0].arguments[0].before is None
    assert any("args[0], key bin_size" in w and "12 bytes" in w for w in dump.warnings)


@pytest.mark.parametrize("key", ["total_args", "before_dispatch", "after_completion"])
def test_counts_that_disagree_with_the_records_are_warned_of(key, tmp_path):
    dump = load_dump(write(tmp_path, [record()], **{key: 7}))
    assert any(w.startswith(f"{key} says 7") for w in dump.warnings)


def test_an_unknown_dtype_is_kept_as_plain_bytes_with_a_warning(tmp_path):
    dump = load_dump(write(tmp_path, [record(dtype="UNKNOWN", bin_size=12)], payload=bytes(range(12))))
    a = dump.dispatches[0].arguments[0]
    assert (a.dtype.name, a.dtype.size, a.before.size) == ("UNKNOWN", 3, 12)
    assert any("UNKNOWN" in w for w in dump.warnings)


def test_an_unknown_payload_layout_is_left_aside(tmp_path):
    layout = {"type": "tiled", "byte_order": "little_endian"}
    dump = load_dump(write(tmp_path, [record(bin_size=16)], payload=bytes(16), bin_format=layout))
    assert dump.dispatches[0].arguments[0].before is None
    assert any("tiled" in w for w in dump.warnings)


def test_a_payload_file_that_is_gone_leaves_the_metadata(tmp_path):
    dump = load_dump(write(tmp_path, [record(bin_size=16)], bin_file="lost.bin"))
    assert dump.dispatches[0].arguments[0].before is None
    assert any("lost.bin is not there" in w for w in dump.warnings)


def test_a_slot_given_twice_in_a_dispatch_is_refused(tmp_path):
    path = tmp_path / "kernel_args_dump.json"
    arg = {"arg_index": 0, "kind": "scalar", "value": 1}
    path.write_text(json.dumps({"dispatches": [{"task_id": 1, "args": [arg, arg]}]}))
    assert "dispatches[0], key args[1].arg_index" in error_of(path)


def test_a_huge_payload_file_is_never_read_to_open_a_dump(tmp_path):
    path = write(tmp_path, [record(bin_size=16, bin_offset=(50 << 30) - 16)], payload=b"")
    with (tmp_path / "args.bin").open("r+b") as file:
        file.truncate(50 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    dump = load_dump(path)
    assert dump.dispatches[0].arguments[0].before.offset == (50 << 30) - 16
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_memory_stays_within_a_small_factor_of_the_manifest(tmp_path):
    path = write(tmp_path, [record(task_id=n // 4, arg_index=n % 4) for n in range(60_000)])
    code = (
        PEAK + "import sys\n"
        "import numpy\nfrom insight_trace import load_dump\n"
        "start = peak()\n"
        "dump = load_dump(sys.argv[1])\n"
        "print(peak() - start, len(dump.dispatches))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    grown, count = map(int, done.stdout.split())
    assert count == 15_000
    assert grown * 1024 < 4 * path.stat().st_size


def test_the_command_prints_one_message_and_no_traceback(tmp_path, capsys):
    path = write(tmp_path, [record(shape=[-1])])
    assert main(["dump", "list", str(path)]) == 1
    error = capsys.readouterr().err
    assert "args[0], key shape" in error
    assert "Traceback" not in error
