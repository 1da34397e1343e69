"""What every page shares: the style sheet (`page.css`), and words, tables and colours (`draw.js`)."""

from __future__ import annotations

import importlib.resources


def shared(name: str) -> str:
    """The text of a shared file."""
    return importlib.resources.files("insight_trace.pages").joinpath(name).read_text("utf-8")
