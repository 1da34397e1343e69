"""Clean traces, numbers, comparisons: pure functions of `model.Trace`, one module each.

clean.clean, stats.stats, stats.pipes, critical.critical_path, advice.advise, compare.compare,
metrics.metrics, frames.to_pandas and frames.to_arrow; writers are chrome.write_chrome and
perfetto.write_perfetto.
"""
