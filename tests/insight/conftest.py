"""Fixtures of the tests of Insight directories."""

from insight_replays import replayed  # noqa: F401
