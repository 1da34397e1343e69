"""Blocks of one task stand side by side, as many as the chip has cores for, and may wait for each other."""

from capture_scenes import make_scene

import insight_trace

BARRIER = """
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *words = reinterpret_cast<__gm__ uint32_t *>(tensor->buffer.addr);
    int32_t mine = get_block_idx(args), all = get_block_num(args);
    st_dev(static_cast<uint32_t>(mine + 1), words + 64 * mine, 0);
    for (int32_t other = 0; other < all; ++other)
        while (ld_dev(words + 64 * other, 0) == 0) {
        }
    words[64 * mine + 1] = 100 + mine;
"""
APART = """
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *words = reinterpret_cast<__gm__ uint32_t *>(tensor->buffer.addr);
    words[64 * get_block_idx(args) + 1] = 100 + get_block_idx(args);
"""
TASK = """
    TensorCreateInfo board(shape, 2, DataType::INT32);
    board.set_initial_value(0);
    for (int turn = 0; turn < 3; ++turn) {
        TaskOutputTensors made = alloc_tensors(board);
        const ChipTensor &words = made.get_ref(0);
        CoreTaskArgs t;
        t.add_inout(words);
        t.launch_spec.set_block_num(20);
        rt_submit_aiv_task(1, t);
        for (uint32_t block = 0; block < 20; ++block) {
            uint32_t at[2] = {block, 1};
            int32_t seen = get_tensor_data<int32_t>(words, 2, at);
            if (seen != int32_t(100 + block))
                rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "block %u left %d", block, seen);
        }
    }
"""


def test_blocks_that_wait_for_each_other_do_not_wait_for_ever(tmp_path):
    result = insight_trace.capture(make_scene(tmp_path, TASK, BARRIER), level=0, seconds=10.0)
    assert result.failure is None
    assert result.passed
    assert result.dispatches == 1 + 3 * 20


def test_blocks_that_do_not_wait_give_the_same_on_any_number_of_workers(tmp_path):
    scene = make_scene(tmp_path, TASK, APART)
    contents = set()
    for workers in (1, 3):
        out = tmp_path / f"run{workers}"
        result = insight_trace.capture(scene, output=out, workers=workers, seconds=10.0)
        assert result.failure is None
        assert result.passed
        files = sorted((out / "args_dump").iterdir())
        contents.add(tuple(file.read_bytes() for file in files))
    assert len(contents) == 1
