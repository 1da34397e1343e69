"""Fixtures of the tests of Insight directories."""

from insight_replays import profiled, replayed, run_alone  # noqa: F401
