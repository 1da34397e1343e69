"""Replay: one recorded dispatch, simulated again, checked against what was recorded, exported for Insight."""

from insight_trace import make_callable

make_callable(__name__)
