"""The example build is what it claims: sizes checked twice, and every result stated in NumPy."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from insight_trace.profile import ProfileRequest, list_kernels
from insight_trace.ptoas.inputs import content_of
from insight_trace.ptoas.spec import BufferArg

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


def test_every_generated_kernel_of_a_simpler_checkout_has_its_entry_read(simpler_checkout, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pto_coverage.py", "--simpler", str(simpler_checkout)])
    assert coverage.main() == 0


def test_all_samples_of_a_ptoas_checkout_have_the_right_sizes(ptoas_checkout, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pto_coverage.py", "--ptoas", str(ptoas_checkout)])
    assert coverage.main() == 0
    assert "0 files right" not in capsys.readouterr().out
