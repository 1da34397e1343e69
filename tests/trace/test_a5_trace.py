"""Traces of the 950 family, whose vector pipe is on several lanes."""

import numpy as np

from insight_trace.model import Pipe, Trace
from insight_trace.simulate.embedded.op_forms import OpRequest
from insight_trace.simulate.embedded.simulator import EmbeddedOptions
from insight_trace.simulate.embedded.single_op import named_dtype, time_op
from insight_trace.trace.critical import critical_path
from insight_trace.trace.roofs import roofs_of


def test_the_critical_path_goes_through_the_lanes_of_a_function_without_a_gap():
    run = time_op(OpRequest("TEXP", named_dtype("float"), 64, 64), EmbeddedOptions(target="a5")).simulation
    path = critical_path(Trace(run.instructions, run.mhz, run.soc_version))
    lanes = {Pipe(int(run.instructions.pipe[row])) for row in path.row}
    assert lanes & {Pipe.PUSHQ, Pipe.RVECST}
    busy = (path.end - path.begin)[~path.idle].sum()
    assert busy >= 0.9 * np.ptp(np.r_[run.instructions.start, run.instructions.end])


def test_its_ceilings_follow_the_name_of_the_chip():
    assert roofs_of("Ascend950PR_9599").bandwidth["GM_TO_UB"] == 177.96
    assert roofs_of("Ascend950DT_95A1").bandwidth["UB_TO_GM"] == 143.74
    assert roofs_of("Ascend950PR_9589").bandwidth["GM_TO_UB"] == 163.13
    assert roofs_of("Ascend910B1").bandwidth["GM_TO_UB"] == 220.0
