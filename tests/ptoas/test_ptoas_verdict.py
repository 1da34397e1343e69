"""A trace that shows no work is named as such, core by core, with the argument to set; others are not."""

import dataclasses
from pathlib import Path

import pytest
from scripted_runner import pipes_of

from insight_trace.dtypes import dtype_named
from insight_trace.model import CoreType
from insight_trace.profile.kernel_runner import CorePipes
from insight_trace.profile.profile_run import near_empty, suspects
from insight_trace.ptoas.planned_kernel import BufferArg, Content, ProfileKernel, ValueArg
from insight_trace.ptoas.pto_facts import NO_WORK, CoreWork


def kernel(
    kind: CoreType, cube: CoreWork = NO_WORK, vector: CoreWork = NO_WORK, arguments=()
) -> ProfileKernel:
    return ProfileKernel("k", "k", kind, "a2a3", Path("k.cpp"), Path("k.pto"), (), arguments, cube, vector)


def core(name: str, **instructions: int) -> CorePipes:
    return CorePipes(name, {}, instructions)


def test_a_healthy_run_passes():
    for found in (
        kernel(CoreType.AIC, cube=CoreWork(2, 4)),
        kernel(CoreType.AIV, vector=CoreWork(1, 1)),
        kernel(CoreType.MIX, CoreWork(1, 4), CoreWork(1, 4)),
    ):
        assert near_empty(found, pipes_of(found)) == ""


AIV, MOVES = kernel(CoreType.AIV, vector=CoreWork(1, 1)), kernel(CoreType.AIV)
MIX = kernel(CoreType.MIX, CoreWork(1, 4), CoreWork(1, 4))
LOOP = kernel(CoreType.AIC, cube=CoreWork(2, 0))  # whose length nobody knows
VEC, CUBE = "core0.veccore0", "core0.cubecore0"


def test_a_small_vector_kernel_is_no_empty_one():
    assert near_empty(AIV, (core(VEC, VECTOR=1, MTE2=1),)) == ""


def test_a_kernel_that_only_moves_data_is_judged_by_its_transfers():
    assert MOVES.moves_only
    assert near_empty(MOVES, (core(VEC, MTE2=1, MTE3=1),)) == ""
    assert "moved no data" in near_empty(MOVES, (core(VEC, SCALAR=50),))


def test_fewer_instructions_than_the_pto_asks_for_are_named_and_an_unknown_loop_must_do_something():
    verdict = near_empty(kernel(CoreType.AIV, vector=CoreWork(3, 48)), (core(VEC, VECTOR=3, MTE2=4),))
    assert "core0.veccore0 executed 3 VECTOR instructions where the .pto asks for 48" in verdict
    assert "executed no CUBE instruction" in near_empty(LOOP, (core(CUBE, CUBE=0, MTE2=1),))


def test_an_idle_side_of_a_mix_is_seen_although_the_other_side_works():
    healthy = pipes_of(MIX)
    idle = (*healthy[:2], core("core0.veccore1", SCALAR=9))
    assert "core0.veccore1" in near_empty(MIX, idle)
    assert "no vec core is in the trace" in near_empty(MIX, healthy[:1])


def test_no_numbers_give_no_verdict():
    assert near_empty(AIV, ()) == ""


def test_the_arguments_that_were_made_up_are_the_suspects():
    i32 = dtype_named("int32")
    assert i32 is not None
    arguments = (
        BufferArg(0, "v1", "lens", i32, 4, Content.ZERO, "use not seen"),
        BufferArg(1, "v2", "table", i32, 4, Content.CONSTANT, "loop bound"),
        ValueArg(2, "v3", "n", "int64_t", 4, "loop bound"),
        ValueArg(3, "v4", "given", "int64_t", 4, "given"),
    )
    found = kernel(CoreType.AIV, vector=CoreWork(1, 1), arguments=arguments)
    assert suspects(found) == ("--input lens=FILE", "--input table=FILE", "--scalar n=VALUE")
    assert "--input lens=FILE" in near_empty(found, (core("core0.veccore0", SCALAR=1),))
    assert suspects(dataclasses.replace(found, arguments=arguments[3:])) == ()


@pytest.mark.parametrize("kind", list(CoreType))
def test_every_kind_is_flagged_when_it_idles(kind):
    found = kernel(kind, CoreWork(1, 1), CoreWork(1, 1))
    assert near_empty(found, pipes_of(found, idle=True)).startswith("degenerate: ")
