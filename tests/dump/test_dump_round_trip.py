"""What is written and read again is the same."""

import tempfile
from pathlib import Path

import pytest
from dump_examples import POOL, content, dtype, dumps, without_places
from hypothesis import given
from hypothesis import strategies as st

from insight_trace.dtypes import DTYPES
from insight_trace.dump.load import load_dump
from insight_trace.dump.manifest_writer import DumpForm, write_unified
from insight_trace.dump.write_kernel_args import write_kernel_args
from insight_trace.errors import RequestError
from insight_trace.model import Dispatch, Payload, Role, ScalarArg, TensorArg

WRITERS = {
    "args_dump": lambda folder, dispatches: write_unified(folder, dispatches, form=DumpForm.ARGS_DUMP),
    "tensor_dump": lambda folder, dispatches: write_unified(folder, dispatches, form=DumpForm.TENSOR_DUMP),
    "kernel_args": write_kernel_args,
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "payload.bin"
    path.write_bytes(POOL)
    return path


def same(written, read):
    assert [without_places(d) for d in read] == [without_places(d) for d in written]
    assert [content(d) for d in read] == [content(d) for d in written]


@pytest.mark.parametrize("form", WRITERS)
@given(data=st.data())
def test_random_dispatches_survive_every_form(form, pool, data):
    dispatches = data.draw(dumps(pool))
    with tempfile.TemporaryDirectory() as folder:
        manifest = WRITERS[form](Path(folder) / form, dispatches)
        dump = load_dump(manifest)
        same(dispatches, dump.dispatches)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("element", DTYPES, ids=lambda d: d.name)
def test_every_element_type_survives_every_form(form, element, pool, tmp_path):
    payload = Payload(pool, 3, 6 * element.size)
    tensor = TensorArg(0, element, (2, 3), (3, 1), 0, Role.INOUT, payload, payload)
    scalars = [ScalarArg(slot, element, bits) for slot, bits in enumerate([0, 1, 2**64 - 1], start=1)]
    written = [Dispatch(0, 7, (tensor, *scalars), (0,))]
    same(written, load_dump(WRITERS[form](tmp_path, written)).dispatches)


@pytest.mark.parametrize("form", WRITERS)
def test_nan_infinities_minus_zero_and_the_largest_number_keep_their_bits(form, tmp_path):
    patterns = [0x7FC00000, 0x7FA00001, 0x7F800000, 0xFF800000, 0x80000000, 2**64 - 1, 0xFFFFFFFF00000000]
    f32 = dtype("FLOAT32")
    written = [Dispatch(0, 1, tuple(ScalarArg(i, f32, b) for i, b in enumerate(patterns)), (0,))]
    read = load_dump(WRITERS[form](tmp_path, written)).dispatches[0]
    assert [a.bits for a in read.arguments] == patterns
    assert all(a.exact for a in read.arguments)


@pytest.mark.parametrize("form", WRITERS)
def test_every_real_dump_survives_every_form(form, shared_data, tmp_path):
    for folder in sorted((shared_data / "dumps").iterdir()):
        dump = load_dump(folder)
        again = load_dump(WRITERS[form](tmp_path / folder.name, dump.dispatches))
        same(dump.dispatches, again.dispatches)


@pytest.mark.parametrize("form", WRITERS)
def test_the_same_dispatches_give_the_same_bytes(form, recorded_dumps, tmp_path):
    dump = load_dump(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2")
    for name in ("one", "two"):
        WRITERS[form](tmp_path / name, dump.dispatches)
    files = sorted(p.name for p in (tmp_path / "one").iterdir())
    assert len(files) == 2
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_truncated_payload_stays_truncated(pool, tmp_path):
    tensor = TensorArg(0, dtype("FLOAT32"), (100,), (1,), 0, Role.INPUT, Payload(pool, 0, 40, truncated=True))
    for form, write in WRITERS.items():
        read = load_dump(write(tmp_path / form, [Dispatch(0, 1, (tensor,), (0,))])).dispatches[0]
        assert read.arguments[0].before.truncated
        assert read.arguments[0].before.size == 40


def test_a_dump_that_exists_is_not_replaced_unasked(tmp_path):
    write_unified(tmp_path, [Dispatch(0, 1, ())])
    with pytest.raises(RequestError, match="exists already"):
        write_unified(tmp_path, [])
    write_unified(tmp_path, [], force=True)
    assert len(load_dump(tmp_path).dispatches) == 0


def test_a_write_that_fails_leaves_no_file(tmp_path):
    lost = Payload(tmp_path / "absent.bin", 0, 16)
    tensor = TensorArg(0, dtype("FLOAT32"), (4,), (1,), 0, Role.INPUT, lost)
    for write in WRITERS.values():
        with pytest.raises(Exception, match="cannot be read"):
            write(tmp_path / "out", [Dispatch(0, 1, (tensor,), (0,))])
    assert list((tmp_path / "out").iterdir()) == []


def test_kernel_args_can_point_into_the_payload_of_a_unified_dump_beside_it(recorded_dumps, tmp_path):
    real = load_dump(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2")
    folder = tmp_path / "tensor_dump"
    unified = load_dump(write_unified(folder, real.dispatches, form=DumpForm.TENSOR_DUMP))
    write_kernel_args(folder, unified.dispatches, payload_beside="tensor_dump.bin")
    assert sorted(p.name for p in folder.iterdir()) == [
        "kernel_args_dump.json",
        "tensor_dump.bin",
        "tensor_dump.json",
    ]
    dump = load_dump(tmp_path)
    assert dump.schema == "kernel_args"
    same(unified.dispatches, dump.dispatches)
