"""The example build is what it claims: sizes checked twice, and every result stated in NumPy."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.ptoas.buffer_content import content_of
from insight_trace.ptoas.planned_kernel import BrokenKernel, BufferArg

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "examples" / "pypto_build"
KERNELS = {k.name: k for k in list_kernels(ProfileRequest(BUILD))}


def module_at(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


coverage = module_at(ROOT / "tools" / "pto_coverage.py")
EXPECTED = module_at(BUILD / "expected.py").EXPECTED


def test_the_build_has_twelve_kernels_of_every_kind_and_form():
    assert len(KERNELS) == 12
    assert {k.kind.value for k in KERNELS.values()} == {"aic", "aiv", "mix"}
    assert {f.form.value for k in KERNELS.values() for f in k.functions} == {
        "bare",
        "global",
        "extern-global",
    }
    assert not [w for k in KERNELS.values() for w in k.warnings]


def test_every_kernel_says_what_it_computes():
    assert set(EXPECTED) == set(KERNELS)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_statement_gives_every_output_in_its_size_and_type_and_none_is_trivial(name):
    kernel = KERNELS[name]
    buffers = {b.label: content_of(b, kernel.seed) for b in kernel.buffers}
    values = {v.label: v.value for v in kernel.values}
    outputs = EXPECTED[name](buffers, values)
    written = {b.label: b for b in kernel.buffers if b.role == "output"}
    assert set(outputs) == set(written)
    for label, result in outputs.items():
        assert result.shape == (written[label].elements,)
        assert np.isfinite(result.astype(np.float64)).all()
        assert result.astype(np.float64).any()


@pytest.mark.parametrize("path", sorted(BUILD.rglob("*.pto")), ids=lambda path: path.stem)
def test_sizes_agree_with_the_second_evaluator(path):
    compared, wrong = coverage.check(path, False)
    assert compared >= 2
    assert not wrong


def test_the_second_evaluator_would_notice_a_wrong_size(monkeypatch):
    right = coverage.kernel_arguments

    def shrunk(*arguments):
        import dataclasses

        prepared = right(*arguments)
        changed = tuple(
            dataclasses.replace(a, elements=a.elements - 1) if isinstance(a, BufferArg) else a
            for a in prepared.arguments
        )
        return dataclasses.replace(prepared, arguments=changed)

    monkeypatch.setattr(coverage, "kernel_arguments", shrunk)
    _, wrong = coverage.check(BUILD / "ptoas" / "vector_add.pto", False)
    assert len(wrong) == 3


def test_a_real_build_is_read_to_the_last_kernel():
    value = os.environ.get("INSIGHT_TRACE_PYPTO_BUILD")
    if not value:
        pytest.skip("set INSIGHT_TRACE_PYPTO_BUILD to a build directory of PyPTO to run this test")
    kernels = list_kernels(ProfileRequest(Path(value)))
    assert not [kernel.problem for kernel in kernels if isinstance(kernel, BrokenKernel)]


def test_every_generated_kernel_of_a_simpler_checkout_has_its_entry_read(simpler_checkout, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pto_coverage.py", "--simpler", str(simpler_checkout)])
    assert coverage.main() == 0


def test_all_samples_of_a_ptoas_checkout_have_the_right_sizes(ptoas_checkout, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pto_coverage.py", "--ptoas", str(ptoas_checkout)])
    assert coverage.main() == 0
    assert "0 files right" not in capsys.readouterr().out


def test_generated_kernels_of_a_simpler_checkout_compile_from_their_raw_form(simpler_checkout, capsys):
    """One in twenty; the tool without --every takes them all."""
    assert coverage.check_compiles(simpler_checkout, 20) == 0
    assert "(100 %)" in capsys.readouterr().out


def test_a_kernel_that_does_not_compile_counts_as_such(tmp_path, capsys):
    raw = "static __aicore__ void k(__gm__ float* v1) {{ {} }}"
    text = "// Kernel Function: k\n// --- ptoas-generated code ---\n{}\n// --- Kernel entry point ---\n"
    for name, body in (("good", "set_flag(PIPE_V, PIPE_S, EVENT_ID0);"), ("bad", "TNOSUCHOP(v1);")):
        (tmp_path / "aiv").mkdir(exist_ok=True)
        (tmp_path / "aiv" / f"{name}.cpp").write_text(text.format(raw.format(body)))
    assert coverage.check_compiles(tmp_path, 1) == 1
    out = capsys.readouterr().out
    assert "aiv/bad.cpp: " in out
    assert "TNOSUCHOP" in out
    assert "1/2 generated kernels compile (50 %)" in out
