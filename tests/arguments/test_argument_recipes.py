"""The four kernels of paged attention need no dump, and others can be taught."""

import pytest
from recorded_dispatches import dispatch, real_dispatches, tensor
from tests.materialised import materialise_all

from insight_trace.arguments import argument_recipes as recipes_module
from insight_trace.arguments.argument_recipes import (
    from_recipe,
    recipe_names,
    register_recipe,
    with_missing_scalars,
)
from insight_trace.arguments.dispatch import from_dispatch
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.errors import RequestError
from insight_trace.model import Case, Tier

SMALL = Case(
    "CaseSmall1",
    params={
        "batch": 1,
        "num_heads": 16,
        "head_dim": 16,
        "block_size": 16,
        "context_len": 33,
        "dtype": "bfloat16",
    },
)


@pytest.mark.parametrize(("name", "func_id"), [("QK", 0), ("SF", 1), ("PV", 2), ("UP", 3)])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_recipe_has_the_layout_of_the_real_dispatch(recorded_dumps, name, func_id, step):
    dump = real_dispatches(recorded_dumps / "paged_attention_CaseSmall1_args_dump_level2/args_dump")
    real = [d for d in dump if d.func_ids == (func_id,)][step]
    made = from_recipe(name, SMALL, step)
    assert [item.slot for item in made.slots] == [argument.slot for argument in real.arguments]
    for item, argument in zip(made.slots, real.arguments, strict=True):
        if hasattr(argument, "shape"):
            assert (item.dtype, item.shape, item.strides, item.role) == (
                argument.dtype,
                argument.shape,
                argument.strides,
                argument.role,
            )
        else:
            assert item.bits == argument.bits
    assert len(materialise_all(made)) == len(made.tensors)


def test_a_short_context_gives_the_masked_view_and_the_last_block():
    case = Case("short", params={**SMALL.params, "context_len": 5})
    assert from_recipe("sf", case).at(0).shape == (16, 5)
    assert from_recipe("sf", case).at(0).strides == (16, 1)
    assert from_recipe("up", case).at(8).bits == 1
    assert from_recipe("up", SMALL).at(8).bits == 0
    listed = Case("listed", params={**SMALL.params, "context_lens_list": [7, 99]})
    assert from_recipe("SF", listed).at(0).shape == (16, 7)


@pytest.mark.parametrize("value", [None, 0, -1, "16", True, 2**40])
def test_a_parameter_that_is_no_size_is_named(value):
    case = Case("odd", params={**SMALL.params, "head_dim": value})
    with pytest.raises(RequestError, match=r"odd.*head_dim"):
        from_recipe("QK", case)
    with pytest.raises(RequestError, match="dtype"):
        from_recipe("QK", Case("odd", params={**SMALL.params, "dtype": "float99"}))


def test_an_unknown_kernel_is_answered_with_the_recipes_that_exist():
    with pytest.raises(RequestError, match="QK, SF, UP"):
        from_recipe("matmul", SMALL)


def test_more_recipes_can_be_registered_once(monkeypatch):
    monkeypatch.setattr(recipes_module, "_recipes", dict(recipes_module._recipes))
    register_recipe("Mine", lambda _case, _step: ReplayArguments(()))
    assert "MINE" in recipe_names()
    assert from_recipe("mine", SMALL).slots == ()
    with pytest.raises(RequestError, match="already"):
        register_recipe("MINE", lambda _case, _step: ReplayArguments(()))


def test_steps_go_through_the_sequences_block_by_block():
    case = Case("two", params={**SMALL.params, "batch": 3, "context_lens_list": [33, 17]})
    steps = [from_recipe("UP", case, step) for step in range(8)]
    assert [made.at(7).bits for made in steps] == [1, 0, 0, 1, 0, 1, 0, 0]
    assert [made.at(8).bits for made in steps] == [0, 0, 1, 0, 1, 0, 0, 1]
    assert [from_recipe("SF", case, step).at(0).shape[1] for step in range(8)] == [
        16,
        16,
        1,
        16,
        1,
        16,
        16,
        1,
    ]
    with pytest.raises(RequestError, match="makes 8 dispatches"):
        from_recipe("UP", case, 8)


def test_a_dump_without_scalars_gets_them_from_the_recipe_and_says_so():
    bare = from_dispatch(dispatch(tensor(0), tensor(1), missing=("scalars",)))
    assert any("no scalars" in text for text in bare.warnings)
    full = with_missing_scalars(bare, from_recipe("SF", SMALL, 2))
    assert full.at(4).bits == 0x3F800000
    assert full.at(4).tier is Tier.RECONSTRUCTED
    assert [t.slot for t in full.tensors] == [0, 1]
    assert not any("no scalars" in text for text in full.warnings)
    assert any("slot 4" in text and "case's parameters" in text for text in full.warnings)
    assert with_missing_scalars(full, from_recipe("SF", SMALL)) == full
