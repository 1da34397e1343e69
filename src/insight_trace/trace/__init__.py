"""Clean traces, numbers, comparisons: all pure functions of `model.Trace`."""
