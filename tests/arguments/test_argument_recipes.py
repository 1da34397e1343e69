"""The four kernels of paged attention need no dump, and others can be taught."""

import pytest
from recorded_dispatches import real_dispatches

from insight_trace.arguments import recipes as recipes_module
from insight_trace.arguments.buffers import materialise_all
from insight_trace.arguments.recipes import from_recipe, recipe_names, register_recipe
from insight_trace.arguments.slots import ReplayArguments
from insight_trace.errors import RequestError
from insight_trace.model import Case

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
def test_a_recipe_has_the_layout_of_the_real_first_dispatch(shared_data, name, func_id):
    dump = real_dispatches(shared_data / "dumps/paged_attention_CaseSmall1_args_dump_level2/args_dump")
    real = next(d for d in dump if d.func_ids == (func_id,))
    made = from_recipe(name, SMALL)
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
    register_recipe("Mine", lambda _case: ReplayArguments(()))
    assert "MINE" in recipe_names()
    assert from_recipe("mine", SMALL).slots == ()
    with pytest.raises(RequestError, match="already"):
        register_recipe("MINE", lambda _case: ReplayArguments(()))
