"""A kernel may leave conditions behind: its task is done when they hold, not when the kernel ends."""

import pytest
from capture_scenes import make_scene

import insight_trace

# without a scalar: waits for 3 in the tensor's first word; with one: adds that many
KERNEL = """
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *counter = reinterpret_cast<volatile __gm__ int32_t *>(tensor->buffer.addr);
    if (args[1] == 0) {
        AsyncCtx context = get_async_ctx(args);
        save_expected_notification_counter(context, counter, 3);
    } else if (args[1] == 99) {
        AsyncCtx context = get_async_ctx(args);
        for (int i = 0; i <= 64; ++i) save_expected_notification_counter(context, counter, 1);
    } else {
        send_notification(counter, static_cast<int32_t>(args[1]), pto::comm::NotifyOp::AtomicAdd);
    }
"""
TASKS = """
    TensorCreateInfo board(shape, 2, DataType::INT32);
    board.set_initial_value(0);
    TaskOutputTensors made = alloc_tensors(board);
    auto submit = [&](int64_t what, PTO2TaskId after) {{
        CoreTaskArgs t;
        t.add_no_dep(made.get_ref(0));
        t.add_scalar(what);
        if (after.is_valid()) t.set_dependencies(&after, 1);
        return rt_submit_aiv_task(1, t).task_id();
    }};
    PTO2TaskId waiting = submit({first}, PTO2TaskId::invalid());
    PTO2TaskId last = waiting;
    for (int i = 0; i < {raises}; ++i) last = submit(1, PTO2TaskId::invalid());
    // only once the first is done: four
    submit(1, waiting);
    rt_submit_dummy_task(CoreTaskArgs{{}});
"""


def scene_of(folder, first, raises):
    every = [TASKS.format(first=f, raises=r) for f, r in ((0, 3), (0, 2), (99, 0))]
    return make_scene(folder, TASKS.format(first=first, raises=raises), KERNEL, every)


def order_of(folder):
    dump = insight_trace.load_dump(folder)
    return [d for d in dump.dispatches if d.func_ids == (1,)]


@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_a_task_is_done_when_the_counter_it_waits_for_is_high_enough(shuffle, tmp_path):
    scene = scene_of(tmp_path, first=0, raises=3)
    result = insight_trace.capture(scene, output=tmp_path / "run", shuffle=shuffle, workers=2, seconds=10.0)
    assert result.failure is None
    assert result.passed
    waiting, *_, following = order_of(tmp_path / "run")
    payload = (tmp_path / "run" / "args_dump" / "args.bin").read_bytes()
    after, before = waiting.arguments[0].after, following.arguments[0].before
    assert int.from_bytes(payload[after.offset : after.offset + 4], "little") == 3
    assert int.from_bytes(payload[before.offset : before.offset + 4], "little") == 3


def test_a_counter_that_nobody_raises_is_a_deadlock_with_the_task(tmp_path):
    result = insight_trace.capture(scene_of(tmp_path, 0, 2), output=tmp_path / "run", seconds=10.0)
    assert result.failure is not None
    assert result.failure.fault.value == "kernel"
    assert "to reach 3; it is 2, and no task is left" in result.failure.message
    assert "kernel OWN" in result.task
    assert order_of(tmp_path / "run")


def test_more_conditions_than_a_task_may_have_are_the_kernels_fault(tmp_path):
    result = insight_trace.capture(scene_of(tmp_path, 99, 0), output=tmp_path / "run", seconds=10.0)
    assert result.failure is not None
    assert result.failure.fault.value == "kernel"
    assert "error 102 of asynchronous completion" in result.failure.message
