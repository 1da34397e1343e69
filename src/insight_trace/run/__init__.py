"""A case on a whole chip; what a device measured of it, and what follows from that."""

from insight_trace import make_callable

make_callable(__name__)
