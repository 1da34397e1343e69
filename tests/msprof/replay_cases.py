"""The dispatches that these tests replay: a cube kernel, a vector kernel, mixes with one and two of those."""

import struct
from pathlib import Path

from insight_trace.arguments.slots import Random, ReplayArguments, ReplayScalar, Zero, make_tensor
from insight_trace.dtypes import dtype_named
from insight_trace.model import CoreType, Kernel, Role, Tier
from insight_trace.simulate.msprof.vendor_workspace import VendorJob

DATA = Path(__file__).resolve().parent.parent / "data/msprof"
F32, I32, U64 = dtype_named("f32"), dtype_named("i32"), dtype_named("u64")

CUBE = Kernel("DOUBLE", DATA / "kernels/aic/double_it.cpp", CoreType.AIC, 0)
ADD = Kernel("ADD", DATA / "kernels/aiv/add_scale.cpp", CoreType.AIV, 1)
LANE = Kernel("LANE", DATA / "kernels/aiv/which_lane.cpp", CoreType.AIV, 2)

MEMBERS = {"aic": (CUBE,), "aiv": (ADD,), "mix-1": (CUBE, ADD), "mix-2": (CUBE, ADD, LANE)}


def arguments(block_count: int = 1) -> ReplayArguments:
    """Slots of all three kernels; a kernel reads only its own."""
    return ReplayArguments(
        (
            make_tensor(
                0,
                F32,
                (3, 2),
                Random(7),
                Tier.EXACT,
                strides=(4, 1),
                start_offset=5,
                role=Role.INPUT,
                name="in0",
            ),
            make_tensor(1, F32, (3, 2), Zero(), Tier.OUTPUT, role=Role.OUTPUT, name="out1"),
            make_tensor(2, F32, (8,), Random(8), Tier.EXACT, role=Role.INPUT, name="in2"),
            make_tensor(3, F32, (8,), Zero(), Tier.OUTPUT, role=Role.OUTPUT, name="out3", start_offset=16),
            make_tensor(5, I32, (2, 4), Zero(), Tier.OUTPUT, role=Role.OUTPUT, name="out5"),
            ReplayScalar(6, U64, struct.unpack("<I", struct.pack("<f", 0.5))[0], Tier.EXACT, "scale"),
        ),
        block_count,
    )


def job(members: str = "aiv", target: str = "a2a3", **rest) -> VendorJob:
    roots = {"pto_isa_root": Path("/opt/pto-isa"), "simpler_root": Path("/opt/simpler")}
    kernels = rest.pop("kernels", MEMBERS[members])
    return VendorJob(kernels, rest.pop("arguments", arguments()), target, **{**roots, **rest})
