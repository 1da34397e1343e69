"""Right and wrong programs under `insight-trace exec` behave as on a device, and what is wrong is said with its line.

One source has them all (device_behaviour.cpp), so that it is compiled once.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.program.test_own_programs import run_exec

SOURCE = Path(__file__).with_name("device_behaviour.cpp")


class Ran(NamedTuple):
    printed: str
    said: str
    code: int


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    folder = tmp_path_factory.mktemp("device_behaviour")
    (folder / "go.sh").write_text(
        f"bisheng -xcce --npu-arch=dav-2201 -O2 -g {SOURCE} -o programs -lascendcl -lruntime -lpthread || exit 3\n"
        "export A_SECRET=1\n"
        'for name in $(./programs); do echo "== $name"; echo "== $name" >&2; ./programs $name; echo "-> $?"; done\n'
    )
    done = run_exec(folder, "sh", "go.sh", options=("--trace", "none", "--time-limit", "2"))
    assert done.returncode == 0, done.stderr
    said = dict(_parts(done.stderr))
    return {
        name: Ran(text.rpartition("-> ")[0].strip(), said[name], int(text.rpartition("-> ")[2]))
        for name, text in _parts(done.stdout)
    }


def _parts(text: str) -> list[tuple[str, str]]:
    words = re.split(r"^== (\w+)\n", text, flags=re.M)
    return list(zip(words[1::2], words[2::2], strict=True))


RIGHT = {
    "simple": "0 3",
    "externc": "0 2",
    "template": "0 4",
    "table": "0 2 3",
    "many": "0 1011.75 1011.75",
    "scalar": "0 35",
    "says": "block 0 of 2\nblock 1 of 2\n0",
    "callback": "4",
    "memcpy2d": "7 8 0",
    "threads": "1 2 3 4",
    "many_blocks": "0 2",
    "queries": "8 24 48 1 Ascend910B1",
    "rt": "4",
    "reuse": "done",
    "halves": "2",  # of one buffer, on two streams
    "no_sync_default": "2",  # the default stream is waited for
    "init2": "100002 0 0 0",
    "owners": "20",
    "fresh_after_reset": "a5a5a5a5 0",
    "pinned_chain": "2 2",
}
WRONG = {
    "confined": ("0 0 507035", "the kernel called fork"),  # no secret, no file of the program, no process
    "endless": ("507046 507034 0", "did not end within its limit of time"),
    "lone_wait": ("507034 msg", "pipe V waits for flag MTE2 -> V, event 2, which nothing sets"),
    "past_ub": ("507035", "goes past its 196608 bytes"),
    "past_end": ("507035", "buffer 2 ends 256 bytes earlier"),
    "error_then_ok": ("507035 507035 0 2", "buffer 2 ends 256 bytes earlier"),
    "null": ("507035", "a null pointer is used as an address of the device"),
    "stack": ("507035", "it is no address of the device, as a pointer of the host is none"),
    "freed": ("507035", "buffer 1 (1024 bytes), which was freed before the launch"),
    "double_free": ("0 100000 100000 100000", "is freed already"),
    "kinds": ("0 107012 0 100000 100000", "ACL_MEMCPY_HOST_TO_DEVICE, but it copies from the device to the host"),
    "oom": ("207001 1", "no room for 107374182400 bytes"),
    "device8": ("0 107001 107001", "aclrtSetDevice(8): there are devices 0 to 7"),
    "zero_blocks": ("107000", "a launch has 1 to 65535 blocks, not 0"),
    "worth": ("0 107003 107003", "a stream that does not exist"),  # a launch has a value
    "stops": ("507035", "the kernel executed trap()"),
    "tasks": ("4 3 8 100000", "aclrtGetRunMode: a null pointer"),
    "wait_first": ("done", "nothing has written what is waited for yet"),
    "dead_stream": ("107003 107003", "a stream that does not exist"),
    "events": ("7 1 100000", "an event was not recorded"),
    "no_sync": ("2", "the program has not waited for that stream"),
    "no_sync_h2d": ("done", "the program has not waited for that stream"),
    "overlap": ("done", "plus writes bytes 512 to 767 of buffer 2 while deep::er::plus writes them, and no event"),
    "not_waited_for": ("0 2 2 2", "the program ended without waiting for its stream"),
    "pitch": ("107000 0 100000", "rows of 32 bytes do not fit into pitches of 16 and 64"),
    "no_device": ("0", "before aclrtSetDevice: a device answers 107002"),
    "async_copy_race": ("done", "while aclrtMemcpyAsync reads them, and no event"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_ends_as_on_a_device_and_nothing_is_said(name: str, ran: dict[str, Ran]) -> None:
    assert ran[name].code == 0
    assert ran[name].printed.splitlines() == RIGHT[name].splitlines()
    assert "insight-trace:" not in ran[name].said


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_gets_the_code_of_a_device_and_is_told_why(name: str, ran: dict[str, Ran]) -> None:
    printed, words = WRONG[name]
    assert (ran[name].printed, ran[name].code) == (printed, 0)
    assert words in ran[name].said


TOUCHES = {
    "deref": "// a load by the host",
    "deref_write": "// a store by the host",
    "library_call": "// reads device memory",
    "c_free": "// not of the C library",
}


@pytest.mark.parametrize("name", TOUCHES)
def test_a_program_that_touches_device_memory_ends_with_its_line(name: str, ran: dict[str, Ran]) -> None:
    assert ran[name].code == 139
    assert "host code touches device memory" in ran[name].said
    lines = SOURCE.read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if TOUCHES[name] in line)
    assert re.search(rf"^  at .*device_behaviour\.cpp:{number}\b", ran[name].said, re.M)


def test_a_kernel_is_named_with_the_line_that_did_it_and_the_line_that_launched_it(
    ran: dict[str, Ran],
) -> None:
    lines = SOURCE.read_text().splitlines()
    for name, marker in (("past_ub", "// past UB"), ("lone_wait", "// nobody sets it")):
        number = next(i for i, line in enumerate(lines, 1) if marker in line)
        assert f"device_behaviour.cpp:{number}\n" in ran[name].said
        assert "launched at" in ran[name].said


def test_every_program_of_the_source_is_in_a_table(ran: dict[str, Ran]) -> None:
    assert set(ran) == {*RIGHT, *WRONG, *TOUCHES, "odd_ub"}
