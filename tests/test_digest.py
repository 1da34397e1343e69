"""A digest changes with everything in a job; tests/test_stale_results.py has what products make of it."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from insight_trace.arguments.slots import (
    CallerArray,
    Fill,
    FromFile,
    OtherRecord,
    Random,
    Recorded,
    ReplayArguments,
    ReplayScalar,
    Zero,
    make_tensor,
)
from insight_trace.digest import headers_hash, job_digest
from insight_trace.dtypes import dtype_named
from insight_trace.job import Job
from insight_trace.model import CoreType, Kernel, Payload, Role, Tier
from insight_trace.options import RunOptions
from insight_trace.simulate.embedded.toolchain import Toolchain

SOURCE = """
#include "near.h"
#include <far.h>
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    auto *out = reinterpret_cast<__gm__ int32_t *>(args[1]);
    out[0] = NEAR + FAR;
}
"""
F32, I32 = dtype_named("FLOAT32"), dtype_named("INT32")


@pytest.fixture(scope="module")
def toolchain():
    return Toolchain.find()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "far.h").write_text("#define FAR 1\n")
    (tmp_path / "near.h").write_text('#include "below.h"\n#define NEAR (BELOW - 1)\n')
    (tmp_path / "below.h").write_text("#define BELOW 3\n")
    (tmp_path / "kernel.cpp").write_text(SOURCE)
    (tmp_path / "payload.bin").write_bytes(bytes(range(256)))
    (tmp_path / "data.npy").write_bytes(_npy(np.arange(16, dtype=np.float32)))
    return tmp_path


def _npy(array):
    import io

    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _payload(place, offset=0, size=64):
    return Payload(place / "payload.bin", offset, size)


def job_in(place: Path, **changes) -> Job:
    kernel = Kernel("k", place / "kernel.cpp", CoreType.AIV, 0, include_dirs=(str(place / "include"),))
    slots = (
        make_tensor(0, F32, (16,), Recorded(_payload(place)), Tier.EXACT, role=Role.INPUT),
        make_tensor(1, I32, (16,), Zero(), Tier.OUTPUT, role=Role.OUTPUT, expected=_payload(place, 64)),
        make_tensor(2, F32, (16,), FromFile(place / "data.npy"), Tier.EXACT, role=Role.INPUT),
        ReplayScalar(3, I32, 7, Tier.EXACT),
    )
    slots = changes.pop("slots", lambda same: same)(slots)
    kernel = changes.pop("kernel", lambda same: same)(kernel)
    arguments = ReplayArguments(slots, changes.pop("blocks", 1))
    return replace(Job((kernel,), arguments, "a2a3"), **changes)


def slot(number, **fields):
    """The arguments with one of them changed."""
    return {"slots": lambda slots: tuple(replace(s, **fields) if s.slot == number else s for s in slots)}


# what is changed in the job
JOBS = {
    "a scalar's bits": lambda _: slot(3, bits=8),
    "a scalar's type": lambda _: slot(3, dtype=F32),
    "where a scalar comes from": lambda _: slot(3, tier=Tier.RECONSTRUCTED),
    "a shape": lambda _: slot(0, shape=(4, 4), strides=(4, 1)),
    "strides": lambda _: slot(1, shape=(4, 4), strides=(1, 4)),
    "a start offset": lambda _: slot(1, start_offset=4),
    "a tensor's type": lambda _: slot(1, dtype=F32),
    "a role": lambda _: slot(1, role=Role.INOUT),
    "a tier": lambda _: slot(0, tier=Tier.RECONSTRUCTED),
    "a shared buffer": lambda _: slot(2, shares=0),
    "the size of a buffer": lambda _: slot(1, declared_size=4096),
    "a payload's place": lambda p: slot(0, content=Recorded(_payload(p, 4))),
    "a payload's size": lambda p: slot(0, content=Recorded(_payload(p, 0, 32))),
    "content from another record": lambda p: slot(0, content=OtherRecord(_payload(p), F32, (16,), (1,), 0)),
    "the view of that record": lambda p: slot(0, content=OtherRecord(_payload(p), F32, (8,), (2,), 0)),
    "content that is zero": lambda _: slot(0, content=Zero()),
    "a fill": lambda _: slot(0, content=Fill(2.0)),
    "a seed": lambda _: slot(0, content=Random(1)),
    "an array": lambda _: slot(0, content=CallerArray(np.ones(16, np.float32))),
    "nothing to compare with": lambda _: slot(1, expected=None),
    "a cut-off recording": lambda p: slot(1, expected=Payload(p / "payload.bin", 64, 64, truncated=True)),
    "one slot less": lambda _: {"slots": lambda slots: slots[:-1]},
    "the number of blocks": lambda _: {"blocks": 2},
    "what L2 holds": lambda _: {"held": ((0, True),)},
    "the kind of core": lambda _: {"kernel": lambda k: replace(k, core_type=CoreType.AIC)},
    "the entry": lambda _: {"kernel": lambda k: replace(k, entry="other_entry")},
    "the members": lambda _: {"kernels": ()},
    "the target": lambda _: {"target": "a5"},
}  # fmt: skip
SAME = {
    "the time limit": {"seconds": 5.0},
    "host cores": {"host_cores": 1},
    "source text": {"include_source": False},
}


def test_a_file_of_the_users_and_the_type_in_it_are_noticed(place, toolchain):
    names = {job_digest(job_in(place), RunOptions(), toolchain)}
    for array in (np.ones(16, np.float32), np.arange(16, dtype=np.float64)):
        (place / "data.npy").write_bytes(_npy(array))
        names.add(job_digest(job_in(place), RunOptions(), toolchain))
    assert len(names) == 3


@pytest.mark.parametrize("lost", ["kernel.cpp", "below.h", "payload.bin"])
def test_a_job_that_cannot_be_named_has_no_name_and_is_always_run(lost, place, toolchain):
    (place / lost).unlink()
    assert job_digest(job_in(place), RunOptions(), toolchain) == ""


@pytest.mark.parametrize("change", JOBS)
def test_a_change_of_the_job_is_noticed(change, place, toolchain):
    before = job_digest(job_in(place), RunOptions(), toolchain)
    assert job_digest(job_in(place, **JOBS[change](place)), RunOptions(), toolchain) != before


@pytest.mark.parametrize("change", SAME)
def test_where_and_how_long_a_job_runs_does_not_matter(change, place, toolchain):
    before = job_digest(job_in(place), RunOptions(), toolchain)
    assert job_digest(job_in(place), RunOptions(**SAME[change]), toolchain) == before


def test_another_kernel_in_the_folder_counts_only_where_somebody_includes_it(tmp_path):
    (tmp_path / "k0.cpp").write_text("int a;\n")
    (tmp_path / "k1.cpp").write_text("int b;\n")
    before = headers_hash(tmp_path)
    (tmp_path / "k1.cpp").write_text("int c;\n")
    assert headers_hash(tmp_path) == before
    (tmp_path / "k0.cpp").write_text('  # include "k1.cpp"\n')
    including = headers_hash(tmp_path)
    (tmp_path / "k1.cpp").write_text("int d;\n")
    assert headers_hash(tmp_path) != including != before
