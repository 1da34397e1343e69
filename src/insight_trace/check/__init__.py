"""What is wrong in a kernel: findings, how they read, and which of them a user allows."""

from insight_trace import make_callable

make_callable(__name__)
