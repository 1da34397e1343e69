"""Capture: run a scene on the host and record every dispatch as a dump."""

from insight_trace import make_callable

make_callable(__name__)
