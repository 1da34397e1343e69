"""Fixtures of the tests of Insight directories."""

from insight_replays import profiled, replayed  # noqa: F401
