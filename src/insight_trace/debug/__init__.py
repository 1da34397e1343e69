"""Any moment of a recorded run, and the way back from a wrong number (docs/finding-a-wrong-number.md)."""

from __future__ import annotations

from insight_trace.debug.debug_session import Session, open_session
from insight_trace.debug.moment import Moment

__all__ = ["Moment", "Session", "open_session"]
