"""Candidate kernels for a task: compiled, run, compared with its reference, checked, timed, explained.

insight-trace judge TASK CANDIDATE.cpp …    one line each: outcome, score, and the reason with what to do next
insight-trace judge TASK CANDIDATE.cpp … --json

TASK is a JSON file (docs/judge.md), a task folder of cann-bench, or a reference file of MultiKernelBench.
Exit 1 if one of the candidates is not right.
"""

from __future__ import annotations

import argparse

RUNS_KERNELS = True


OPTIONS = """
task TASK             path    what to compute, and a reference
candidates CANDIDATE  path +  a C++ file with a kernel
--case N              int     of a task of cann-bench (1)
@ jobs
--json                on      print one JSON object, a verdict for each candidate
"""


def run(options: argparse.Namespace) -> int:
    import json

    from insight_trace.commands import shown_progress
    from insight_trace.errors import RequestError
    from insight_trace.judge import judge_all, read_task
    from insight_trace.judge.verdict import Verdict, verdict_data
    from insight_trace.limits import cut, visible

    for path in options.candidates:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise RequestError(f"{path} {what}", hint="a candidate is a C++ file with one kernel: name each")
    task = read_task(options.task, options.case)
    found: dict[int, Verdict] = {}
    with shown_progress() as progress:
        for place, verdict in judge_all(options.candidates, task, jobs=options.jobs, cluster=options.cluster):
            found[place] = verdict
            progress("judge", len(found), len(options.candidates))
    verdicts = [found[place] for place in range(len(options.candidates))]
    if options.json:
        print(json.dumps({"task": task.name, "verdicts": [verdict_data(one) for one in verdicts]}, indent=1))
    else:
        for one in verdicts:
            print(f"{one.outcome:<13} {one.score:.3f}  {cut(one.candidate)}: {visible(one.reason, '')}")
            if one.fix:
                print(f"{'':<21}to fix it: {visible(one.fix, '')}")
            for advice in one.advice[1:]:
                print(f"{'':<21}or: {visible(advice.text, '')}")
    return 0 if all(one.right for one in verdicts) else 1
