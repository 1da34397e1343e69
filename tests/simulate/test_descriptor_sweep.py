"""The short form of tools/descriptor_sweep.py: tiles at the end of their memories that say more than they hold."""

import importlib
from pathlib import Path

import pytest

from insight_trace.simulate.embedded.toolchain import Toolchain

TOOLS = Path(__file__).resolve().parents[2] / "tools"

OPS = (
    *("TLOAD", "TSTORE", "TIMG2COL", "TADD", "TCVT", "TROWSUM", "TCOLMAX", "TROWEXPAND"),
    *("TTRANS", "TFILLPAD", "TGATHER", "TMATMUL", "TMOV", "TEXTRACT", "TSORT32", "TSEL"),
)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_no_op_crashes_and_every_fault_is_said_in_words(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    tool = importlib.import_module("descriptor_sweep")
    found = list(tool.sweep(target, OPS, Toolchain.find()))
    assert len({one.op for one in found}) >= len(OPS) - 1
    assert [one for one in found if one.is_ours] == []
    faults = [one.message for one in found if one.end == "kernel"]
    assert any("past" in message for message in faults)
