"""tools/program_coverage.py counts what passes and what does not, and samples the same cases every time."""

import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(10))
def test_numbers(n):
    assert n != 5, "five"
"""


def test_kernels_that_compile_and_tests_that_pass_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("csrc/kernel", "tests", "examples/one"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copyfile(ROOT / "examples" / "own_program" / "add.cpp", tmp_path / "csrc/kernel/kernel_add.cpp")
    (tmp_path / "csrc/kernel/kernel_wrong.cpp").write_text(
        "__global__ AICORE void f() { nothing_like_this(); }\n"
    )
    (tmp_path / "tests/test_numbers.py").write_text(TESTS)
    (tmp_path / "examples/one/run_it.py").write_text("raise SystemExit('wrong by 3')\n")
    main = runpy.run_path(str(ROOT / "tools" / "program_coverage.py"))["main"]
    assert main([str(tmp_path), "--cases", "4"]) == 0
    said = capsys.readouterr().out
    assert "kernels that compile: 1 of 2" in said
    assert "| tests/test_numbers.py | 10 | 4 | 3 | AssertionError: five |" in said
    assert "| examples/one/run_it.py | 1 | 1 | 0 | wrong by 3 |" in said
    assert "3 of 5 cases passed; 0 of 2 files passed whole" in said
    assert main([str(tmp_path / "nowhere")]) == 2
