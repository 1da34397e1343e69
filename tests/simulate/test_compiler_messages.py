"""What a compiler says, in one line and at the kernel's own place; and which compiler is used."""

from pathlib import Path

import pytest

import insight_trace
from insight_trace.errors import JobError, RequestError
from insight_trace.simulate.embedded.compile_errors import first_error
from insight_trace.simulate.embedded.compiler import find_compiler

KERNEL = Path("/scene/kernels/kernel.cpp")


def error(log: str):
    found = first_error(log, KERNEL)
    return found.file, found.line, found.message, found.missing_op


@pytest.mark.parametrize(
    ("log", "missing"),
    [
        (
            "/scene/kernels/kernel.cpp:12:5: error: ‘TFOO’ was not declared in this scope; did you mean ‘TMOV’?",
            "TFOO",
        ),
        ("/scene/kernels/kernel.cpp:12:5: error: use of undeclared identifier 'TFOO'", "TFOO"),
        ("/scene/kernels/kernel.cpp:12:10: error: ‘TFOO’ is not a member of ‘pto’", "TFOO"),
        ("/scene/kernels/kernel.cpp:12:10: error: no member named 'TFOO' in namespace 'pto'", "TFOO"),
        ("/scene/kernels/kernel.cpp:12:5: error: ‘TPipe’ was not declared in this scope", "TPipe"),
        ("/scene/kernels/kernel.cpp:12:5: error: no template named 'TPipe'", "TPipe"),
        ("/scene/kernels/kernel.cpp:12:5: error: ‘pto::comm’ has not been declared", "pto::comm"),
        (
            "/scene/kernels/kernel.cpp:12:10: fatal error: pto/new/thing.hpp: No such file or directory",
            "pto/new/thing.hpp",
        ),
        (
            "/scene/kernels/kernel.cpp:12:10: fatal error: 'pto/new/thing.hpp' file not found",
            "pto/new/thing.hpp",
        ),
        ("/scene/kernels/kernel.cpp:12:5: error: ‘my_function’ was not declared in this scope", ""),
        ("/scene/kernels/kernel.cpp:12:5: error: use of undeclared identifier 'Total'", ""),
        ("/scene/kernels/kernel.cpp:12:10: fatal error: own/helper.hpp: No such file or directory", ""),
    ],
)
def test_what_we_lack_is_told_from_what_the_kernel_got_wrong(log, missing):
    file, line, _, op = error(log)
    assert (file, line, op) == (str(KERNEL), 12, missing)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("error: ‘Gather’ is not a member of ‘AscendC’", "AscendC::Gather"),
        ("error: no member named 'Gather' in namespace 'AscendC'", "AscendC::Gather"),
        ("fatal error: lib/matmul_intf.h: No such file or directory", "lib/matmul_intf.h"),
    ],
)
def test_what_our_subset_of_ascendc_lacks_is_named_with_where_to_get_it(said, name):
    found = first_error(f"/scene/kernels/kernel.cpp:12:5: {said}", KERNEL)
    assert found.refused.startswith(f"{name} is not in our own subset of AscendC")
    assert "--ascendc-root" in found.refused


@pytest.mark.parametrize("requirement", ["", " due to requirement 'kind != CTRL'"])
def test_what_our_own_headers_refuse_is_no_fault_of_the_kernel(requirement: str) -> None:
    said = f"error: static assertion failed{requirement}: control pipes (CTRL_FIFO) are not supported"
    note = "/scene/kernels/kernel.cpp:41:9:   required from here\n"
    ours = Path(insight_trace.__file__).parent / "simulate" / "embedded" / "include" / "pto" / "pipe.hpp"
    found = first_error(f"{note}{ours}:7:3: {said}", KERNEL)
    assert (found.file, found.line) == (str(KERNEL), 41)
    assert found.refused == "control pipes (CTRL_FIFO) are not supported"
    assert not first_error(f"/scene/kernels/kernel.cpp:12:5: {said}", KERNEL).refused


def test_a_header_that_another_tree_of_ours_precompiled_is_the_one_that_lies_here() -> None:
    said = "error: static assertion failed: control pipes (CTRL_FIFO) are not supported"
    below = "insight_trace/simulate/embedded/include/pto/common/fifo.hpp"
    found = first_error(f"/gone/src/{below}:7:3: {said}", KERNEL)
    assert found.refused == "control pipes (CTRL_FIFO) are not supported"
    assert Path(found.file) == Path(insight_trace.__file__).parents[1] / below


def test_an_error_in_a_header_is_placed_at_the_call_in_the_kernel():
    log = """\
In file included from /headers/pto/pto-inst.hpp:3:
/headers/pto/call_forms.hpp: In instantiation of ‘void describe(const T&) [with T = void*]’:
/headers/pto/call_forms.hpp:33:5:   required from ‘void call(A, B)’
/scene/kernels/kernel.cpp:41:9:   required from here
/headers/pto/call_forms.hpp:27:31: error: no matching function for call to ‘type_of<void*>()’
/headers/pto/call_forms.hpp:27:31: error: another one
"""
    assert error(log)[:3] == (
        str(KERNEL),
        41,
        "no matching function for call to ‘type_of<void*>()’",
    )


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("", "the compiler failed without a word"),
        ("\n  \ncollect2: fatal: out of memory\n", "collect2: fatal: out of memory"),
    ],
)
def test_a_compiler_that_names_no_place_is_quoted(log, message):
    assert error(log) == (str(KERNEL), 0, message, "")


def test_the_compiler_that_CXX_names_is_used(monkeypatch, tmp_path):
    own = tmp_path / "own-c++"
    own.write_text("#!/bin/sh\necho 'own compiler 99.1'\n")
    own.chmod(0o755)
    monkeypatch.setenv("CXX", str(own))
    assert find_compiler().version == "own compiler 99.1"


def test_a_CXX_that_does_not_run_is_a_wrong_request(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(RequestError, match="CXX is '/nowhere/c\\+\\+', which does not run"):
        find_compiler()


def test_without_any_compiler_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("insight_trace.simulate.embedded.compiler._ziglang", lambda: None)
    with pytest.raises(JobError) as caught:
        find_compiler()
    assert "install g++" in caught.value.hint
