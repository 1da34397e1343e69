"""Two builds of the same kernels, judged on the same data: what the second does that the first did not.

insight-trace diff BUILD_A BUILD_B          PyPTO builds, scenes, folders that replay, profile or exec wrote, gate baselines
insight-trace diff GOOD OUT --bisect 'make build REV={rev}' --revisions v0.60..v0.61
                                            the first revision whose build in OUT has an error that GOOD has not

Exit 1 if the second build has a new error: a race, another value, a hang, a kernel that does not compile.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

from insight_trace.commands import call, show

if TYPE_CHECKING:
    from insight_trace.guard.difference import Difference

RUNS_KERNELS = True


OPTIONS = """
a A                path         the build that is right
b B                text         the other one; with --bisect where the command leaves its build
--case C           text         of a scene with several cases
--synthetic        on           made-up arguments, without a run of the first build
--all              on           also run and show kernels whose code is the same
--threshold R      float =0.01  what counts as slower, relative (0.01)
--fail-slower      on           exit 1 also for a kernel that is slower
--bisect CMD       text         a build command with {rev} in it, run for revisions
--revisions LIST   text         OLD..NEW of this folder's git, or r1,r2,r3 from older to newer
--build-limit S    float =3600  seconds of one build command (3600)
@ jobs
@ soc_version preset pto_isa_root
--time-limit S -> seconds  float =300  seconds that a kernel may run (%(default)g)
--json             on           print one JSON object
--sarif F          path         also write SARIF 2.1.0 (replaces an earlier one)
--junit F          path         also write a JUnit report (replaces an earlier one)
"""


def run(options: argparse.Namespace) -> int:
    import json

    from insight_trace.errors import RequestError
    from insight_trace.guard.difference import Grade, difference_data
    from insight_trace.guard.reports import junit, sarif_of, table
    from insight_trace.run.baseline import require_share
    from insight_trace.storage import require_reports, write_whole

    require_share(options.threshold, "--threshold")
    if (options.bisect is None) != (options.revisions is None):
        raise RequestError(
            "--bisect and --revisions go together",
            hint="--bisect 'make build REV={rev}' --revisions v0.60..v0.61",
        )
    require_reports(options.sarif, options.junit)
    if options.bisect is not None:
        return _bisect(options)
    found = _diff(options, Path(options.b))
    if options.sarif is not None:
        write_whole(options.sarif, json.dumps(sarif_of(found, Path.cwd()), indent=1) + "\n", force=True)
    if options.junit is not None:
        write_whole(options.junit, junit(found), force=True)
    show(options, lambda: difference_data(found), lambda: table(found, everything=options.all))
    slower = options.fail_slower and found.count(Grade.SLOWER)
    return 1 if found.errors or slower else 0


def _diff(options: argparse.Namespace, b: Path) -> Difference:
    return cast("Difference", call("diff", options, b=b, run_same=options.all))


def _bisect(options: argparse.Namespace) -> int:
    import json

    import msgspec

    from insight_trace.commands import shown_progress
    from insight_trace.guard.bisecting import bisect, builder, revisions_of
    from insight_trace.guard.reports import table

    build = builder(options.bisect, options.b, options.build_limit)
    with shown_progress() as progress:
        found = bisect(
            revisions_of(options.revisions), build, lambda folder: _diff(options, folder), progress
        )
    if options.json:
        print(json.dumps(msgspec.to_builtins(found), indent=1))
        return 1
    for one in found.tried:
        print(f"{one.trial:<10} {one.revision}" + (f"  {one.sentence}" if one.sentence else ""))
    if len(found.candidates) > 1:
        print(f"{'first bad':<10} one of {', '.join(found.candidates)}: those between cannot be built")
    else:
        print(f"{'first bad':<10} {found.first_bad}")
    if found.difference is not None:
        print("\n".join(table(found.difference)))
    return 1
