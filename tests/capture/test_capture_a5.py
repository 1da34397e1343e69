"""Paged attention for the second chip: what is recorded are the values themselves, not zeros that pass."""

import random

import numpy as np
import pytest
from capture_scenes import EXAMPLES

import insight_trace
from insight_trace.dump.recorded_bytes import tensor_array
from insight_trace.model import Stage, TensorArg
from insight_trace.scene.live import load_scene_live

SEED = 20260601
OURS = EXAMPLES / "paged_attention" / "scene.py"
UPSTREAM = "examples/a5/tensormap_and_ringbuffer/paged_attention/test_paged_attention.py"


@pytest.mark.parametrize("case", ["CaseSmall1", "CaseWide"])
def test_our_paged_attention_records_on_a5_what_its_golden_function_expects(case, tmp_path):
    check(OURS, case, tmp_path / "run")


def test_upstreams_paged_attention_records_on_a5_what_its_golden_function_expects(simpler_checkout, tmp_path):
    pytest.importorskip("torch")
    check(simpler_checkout / UPSTREAM, "SmallCase1", tmp_path / "run")


def check(scene, case, folder):
    result = insight_trace.capture(scene, case, platform="a5sim", output=folder, seed=SEED)
    assert result.failure is None
    assert result.passed
    args, golden = inputs_and_golden(scene, case)
    dispatches = list(insight_trace.load_dump(folder).dispatches)
    assert len(dispatches) == result.dispatches == result.tasks
    scores = [d for d in dispatches if d.func_ids == (0,)]
    updates = [d for d in dispatches if d.func_ids == (3,)]
    assert len(scores) == len(updates) == len(dispatches) // 4

    # what the last update left in its view of the output is what the golden function computes
    out = tensor_array(updates[-1].arguments[6], Stage.AFTER)
    expected = array(golden.out).reshape(out.shape)
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)

    # a block of scores is the product of the very inputs that were recorded with it
    query = array(args.query).reshape(out.shape)
    for dispatch in scores:
        left, keys = (tensor_array(a, Stage.BEFORE).astype(np.float32) for a in dispatch.arguments[:2])
        np.testing.assert_array_equal(left, query)
        found = tensor_array(dispatch.arguments[2], Stage.AFTER)
        np.testing.assert_allclose(found, left @ keys.T, rtol=1e-4, atol=1e-4)

    for dispatch in dispatches:
        for argument in dispatch.arguments:
            if not isinstance(argument, TensorArg):
                continue
            for stage, payload in ((Stage.BEFORE, argument.before), (Stage.AFTER, argument.after)):
                # accumulators and the output are nothing before they are first written
                if payload is not None and not (dispatch in updates and argument.slot >= 3):
                    assert tensor_array(argument, stage).astype(np.float32).any(), (dispatch, argument.slot)


def inputs_and_golden(scene, case):
    live = load_scene_live(scene)
    random.seed(SEED)
    np.random.seed(SEED)
    try:
        import torch

        torch.manual_seed(SEED)
    except ImportError:
        pass
    args = live.generate_args(case)
    return args, live.compute_golden(args, case)


def array(tensor):
    return np.asarray(tensor.float().numpy() if hasattr(tensor, "numpy") else tensor, np.float32)
