"""The index of a large dump: the same dispatches as reading all of it, and never those of an earlier content."""

import json
import os

import numpy as np
import pytest

from insight_trace.__main__ import main
from insight_trace.cache import Cache
from insight_trace.dump import index
from insight_trace.dump.load import load_dump
from insight_trace.errors import InputError, RequestError

DISPATCHES = 300


@pytest.fixture(autouse=True)
def index_everything(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIGHT_TRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "INDEXED_FROM", 0)


def manifest(folder, rows, **header):
    folder.mkdir(exist_ok=True)
    lines = ",\n".join("    " + json.dumps(row) for row in rows)
    head = json.dumps({"bin_file": None, **header})[:-1]
    path = folder / "args_dump.json"
    path.write_text(f'{head}, "args": [\n{lines}\n  ]\n}}\n')
    return path


def rows_of(count, **other):
    for n in range(count):
        task = {"task_id": f"0x{2 << 32 | n:016x}", "func_id": [n % 3]}
        yield task | {"arg_index": 0, "role": "input", "dtype": "FLOAT32", "shape": [n % 7 + 1]} | other
        yield task | {"arg_index": 1, "kind": "scalar", "dtype": "INT64", "value": n}


def read_whole(path, monkeypatch, scene=None):
    with monkeypatch.context() as patch:
        patch.setattr(index, "INDEXED_FROM", 1 << 60)
        return load_dump(path, scene)


def entries():
    return list((Cache().root / "dumps").glob("[!.]*"))


def test_every_recorded_dump_reads_the_same_with_an_index(recorded_dumps, monkeypatch):
    indexed = 0
    for folder in sorted(recorded_dumps.iterdir()):
        whole, found = read_whole(folder, monkeypatch), load_dump(folder)
        assert list(found.dispatches) == list(whole.dispatches), folder.name
        assert (found.schema, found.level, found.warnings) == (whole.schema, whole.level, whole.warnings)
        indexed += getattr(found.dispatches, "columns", None) is not None
    assert indexed >= 6


def test_what_is_asked_of_all_dispatches_is_the_same_with_an_index(recorded_dumps, tmp_path, monkeypatch):
    asked = 0
    rows = [
        row | {"pointer": hex(0x1000 + i % 5)} if "shape" in row else row for i, row in enumerate(rows_of(60))
    ]
    for path in (manifest(tmp_path / "dump", rows), *sorted(recorded_dumps.iterdir())):
        whole, found = read_whole(path, monkeypatch), load_dump(path)
        assert list(found.steps()) == list(whole.steps()), path.name
        assert found.kernels() == whole.kernels(), path.name
        everything = range(len(whole.dispatches))
        forms = [dump.forms(everything) for dump in (found, whole)]
        assert len({*zip(*forms, strict=True)}) == len({*forms[0]}) == len({*forms[1]}), path.name
        for func_ids in () if () in whole.kernels() else ((), *whole.kernels()):
            assert found.of_kernels(func_ids) == whole.of_kernels(func_ids), path.name
        for dispatch in whole.dispatches:
            for pointer in {getattr(a, "pointer", None) or 0 for a in dispatch.arguments} - {0}:
                assert list(found.earlier(dispatch, pointer)) == list(whole.earlier(dispatch, pointer))
                asked += 1
    assert asked >= 60


def test_a_job_of_one_dispatch_reads_no_other(tmp_path, monkeypatch):
    rows = rows_of(DISPATCHES, pointer="0x1000")
    dump = load_dump(manifest(tmp_path / "dump", [row for row in rows if row.get("kind") != "scalar"]))
    monkeypatch.setattr(type(dump.dispatches), "__iter__", lambda *_: pytest.fail("every dispatch was made"))
    wanted = dump.dispatch(func_ids=[2], dispatch_id=5)
    assert dump.number_of(wanted) == 5
    assert dump.steps()[5] == 1
    assert [d.dispatch_id for d in dump.earlier(wanted, 0x1000)] == [5, 4, 3, 2, 1, 0]
    assert not list(dump.earlier(wanted, 0x2000))
    assert dump.of_kernels([2])[:2] == [2, 5]
    assert len(set(dump.forms(dump.of_kernels()))) == 21  # seven shapes of each of three kernels


def test_the_second_time_no_record_is_decoded_but_those_asked_for(tmp_path, monkeypatch):
    path = manifest(tmp_path / "dump", rows_of(DISPATCHES))
    first = load_dump(path).dispatches[17]
    monkeypatch.setattr(index, "_write", lambda *_: pytest.fail("the index was made again"))
    dump = load_dump(path)
    monkeypatch.setattr(
        dump.dispatches, "__iter__", lambda: pytest.fail("every dispatch was made"), raising=False
    )
    assert dump.dispatches[17] == first
    assert dump.dispatch(func_ids=[2], dispatch_id=17) == first
    assert dump.dispatch(task_id=2 << 32 | 17) == first
    with pytest.raises(RequestError, match="dispatch id 17") as refused:
        dump.dispatch(func_ids=[1], dispatch_id=17)
    assert refused.value.hint == "that dispatch ran func id 2"


def test_a_manifest_that_was_written_again_gets_an_index_of_its_own(tmp_path):
    path = manifest(tmp_path / "dump", rows_of(DISPATCHES))
    before = load_dump(path).dispatches[5]
    times = path.stat()
    text = path.read_text().replace('"value": 5}', '"value": 6}')
    path.write_text(text)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # of the same length, and dated back
    after = load_dump(path).dispatches[5]
    assert (before.arguments[1].bits, after.arguments[1].bits) == (5, 6)


def test_a_payload_file_that_was_cut_off_is_noticed(tmp_path):
    path = manifest(
        tmp_path / "dump", rows_of(20, bin_offset=0, bin_size=0, truncated=False), bin_file="args.bin"
    )
    payload = tmp_path / "dump" / "args.bin"
    payload.write_bytes(bytes(64))
    assert not load_dump(path).warnings
    rows = [
        row | {"bin_offset": 0, "bin_size": 4} if "shape" in row and row["shape"] == [1] else row
        for row in rows_of(8)
    ]
    manifest(tmp_path / "dump", rows, bin_file="args.bin")
    assert "overlaps" in " ".join(load_dump(path).warnings)
    payload.write_bytes(b"")
    assert "lie outside" in " ".join(load_dump(path).warnings)


@pytest.mark.parametrize("column", ["first", "lines", "ids"])
def test_a_damaged_index_is_made_again(column, tmp_path):
    path = manifest(tmp_path / "dump", rows_of(DISPATCHES))
    expected = list(load_dump(path).dispatches)
    file = entries()[0] / f"{column}.npy"
    shorter = np.load(file)[:-1]
    size = file.stat().st_size
    np.save(file, shorter)
    with file.open("ab") as end:
        end.write(bytes(size - file.stat().st_size))  # as long as it was: the cache sees nothing
    assert list(load_dump(path).dispatches) == expected


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace(",\n", ","),  # all on one line
        lambda text: text.replace('"arg_index"', '\n"arg_index"'),  # records over several lines
    ],
)
def test_another_layout_is_read_whole(spoil, tmp_path, monkeypatch):
    path = manifest(tmp_path / "dump", rows_of(12))
    path.write_text(spoil(path.read_text()))
    dump = load_dump(path)
    assert getattr(dump.dispatches, "columns", None) is None
    assert list(dump.dispatches) == list(read_whole(path, monkeypatch).dispatches)
    assert not entries()


def test_a_task_whose_records_stand_apart_is_still_one_dispatch(tmp_path):
    rows = list(rows_of(4))
    path = manifest(tmp_path / "dump", rows[::2] + rows[1::2])
    dump = load_dump(path)
    assert [len(d.arguments) for d in dump.dispatches] == [2] * 4


def test_a_broken_record_is_reported_as_ever(tmp_path):
    rows = list(rows_of(30))
    rows[40]["shape"] = [-1]
    with pytest.raises(InputError) as refused:
        load_dump(manifest(tmp_path / "dump", rows))
    assert "args[40], key shape" in refused.value.where


def test_rows_of_the_list_are_those_of_reading_all(tmp_path, monkeypatch, capsys):
    path = manifest(tmp_path / "dump", rows_of(DISPATCHES))
    printed = []
    for threshold in (0, 1 << 60):
        monkeypatch.setattr(index, "INDEXED_FROM", threshold)
        for words in ([], ["--func-id", "1"], ["--dispatch-id", "40"], ["--args", "--dispatch-id", "40"]):
            assert main(["dump", "list", str(path), *words]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == (DISPATCHES + 1) + (DISPATCHES // 3 + 1) + 2 + 3
