"""Workspaces of a program's launches."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from insight_trace.program.session import ProgramOptions, Ran


class Product(Struct, frozen=True):
    """What became of one launch that was kept."""

    kernel: str
    workspace: Path | None = None
    findings: tuple[str, ...] = ()
    error: str = ""


def make_products(ran: Ran, options: ProgramOptions, output: Path | None) -> dict[str, Product]:
    return {}
