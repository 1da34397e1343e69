"""The tasks of a case and who waits for whom, found by its orchestration alone."""

import pytest
from capture_scenes import make_scene

from insight_trace.capture.session import CaptureOptions
from insight_trace.capture.task_graph import take_graph
from insight_trace.errors import JobError
from insight_trace.executor import Local
from insight_trace.model import Role
from insight_trace.run.whole_run import RunRequest, run_case


def graph_of(folder, body, among=()):
    scene = make_scene(folder, body, among=among)
    return take_graph(scene, None, folder / "graph", options=CaptureOptions())


def edges_of(graph):
    return sorted(zip(graph.edges["before"].tolist(), graph.edges["after"].tolist(), strict=True))


def test_a_signature_of_fewer_tensors_than_the_task_has_says_nothing_of_its_roles(tmp_path):
    body = "CoreTaskArgs t; t.add_input(a, b, a); t.add_output(info); rt_submit_aiv_task(0, t);"
    graph = graph_of(tmp_path, body)
    last = graph.rows[graph.rows["dispatch_id"] == graph.tasks["dispatch_id"][1]]
    roles = {(int(row["arg_index"]), list(Role)[row["role"]]) for row in last}
    assert roles == {(0, Role.INPUT), (1, Role.INPUT), (2, Role.INPUT), (3, Role.OUTPUT)}


READS_OUT = "uint32_t at[2] = {0, 0}; get_tensor_data<float>(out, 2, at);"

# the first task of every scene, number 0, writes `out`
ORDERS = {
    "who reads waits for who wrote": ("CoreTaskArgs t; t.add_input(out, b); t.add_output(info);", [(0, 1)]),
    "who only writes waits for nobody": ("CoreTaskArgs t; t.add_input(a, b); t.add_output(out);", []),
    "who reads and writes waits for who wrote": (
        "CoreTaskArgs t; t.add_input(a, b); t.add_inout(out);",
        [(0, 1)],
    ),
    "a tensor without dependencies is not waited for": (
        "CoreTaskArgs t; t.add_input(a, b); t.add_no_dep(out);",
        [],
    ),
    "rows that were not written are not waited for": (
        """uint32_t half[2] = {32, 64}, top[2] = {0, 0}, low[2] = {32, 0};
        ChipTensor upper = a.view(half, top), lower = a.view(half, low);
        CoreTaskArgs w; w.add_input(b, b); w.add_output(upper); rt_submit_aiv_task(0, w);
        CoreTaskArgs t; t.add_input(lower, lower); t.add_output(info);""",
        [],
    ),
    "columns that were not written are not waited for": (
        """uint32_t half[2] = {64, 32}, left[2] = {0, 0}, right[2] = {0, 32};
        ChipTensor one = a.view(half, left), other = a.view(half, right);
        CoreTaskArgs w; w.add_input(b, b); w.add_output(one); rt_submit_aiv_task(0, w);
        CoreTaskArgs t; t.add_input(other, other); t.add_output(info);""",
        [],
    ),
    "columns that were written are": (
        """uint32_t half[2] = {64, 32}, left[2] = {0, 0}, right[2] = {0, 16};
        ChipTensor one = a.view(half, left), other = a.view(half, right);
        CoreTaskArgs w; w.add_input(b, b); w.add_output(one); rt_submit_aiv_task(0, w);
        CoreTaskArgs t; t.add_input(other, other); t.add_output(info);""",
        [(1, 2)],
    ),
    "a manual scope waits for what it names": (
        """PTO2ScopeGuard guard{PTO2ScopeMode::MANUAL};
        CoreTaskArgs w; w.add_input(out, b); w.add_output(info); PTO2TaskId first = rt_submit_aiv_task(0, w).task_id();
        CoreTaskArgs t; t.add_input(a, b); t.add_output(info); t.set_dependencies(&first, 1);""",
        [(1, 2)],
    ),
    "so does one of spring 2026": (
        """PTO2ScopeGuard guard{PTO2ScopeMode::MANUAL};
        CoreTaskArgs w; w.add_input(out, b); w.add_output(info); PTO2TaskId first = rt_submit_aiv_task(0, w).task_id();
        w.reset(); w.add_input(out, b); w.add_output(info); PTO2TaskId second = rt_submit_aiv_task(0, w).task_id();
        CoreTaskArgs t; t.add_input(a, b); t.add_output(info); t.add_dep(first); t.add_dep(second);""",
        [(1, 3), (2, 3)],
    ),
}


_BODIES = {name: f"{body} rt_submit_aiv_task(0, t);" for name, (body, _) in ORDERS.items()}


@pytest.mark.parametrize("name", ORDERS)
def test_tasks_wait_as_the_runtime_lets_them(name, tmp_path):
    graph = graph_of(tmp_path, _BODIES[name], _BODIES.values())
    assert edges_of(graph) == ORDERS[name][1]
    assert not graph.ran
    assert not graph.tasks["cycles"].any()


def test_how_a_task_wants_to_be_started_is_kept(tmp_path):
    graph = graph_of(
        tmp_path,
        """CoreTaskArgs t; t.add_input(a, b); t.add_output(info); t.set_block_num(3);
        t.set_allow_early_resolve(); t.launch_spec.set_require_sync_start(true); rt_submit_aiv_task(0, t);
        rt_submit_dummy_task(CoreTaskArgs{}); alloc_tensors(info);""",
    )
    assert graph.tasks["block_count"].tolist() == [1, 3, 1, 1]
    assert graph.tasks["early"].tolist() == [0, 1, 0, 0]
    assert graph.tasks["sync_start"].tolist() == [0, 1, 0, 0]
    assert graph.tasks["func"].tolist() == [[-1, 0, -1], [-1, 0, -1], [-1, -1, -1], [-1, -1, -1]]
    assert len({row["dispatch_id"] for row in graph.rows}) == 2  # blocks of one task are told once


def test_an_orchestration_that_reads_a_result_has_its_kernels_run(tmp_path):
    graph = graph_of(
        tmp_path,
        READS_OUT + "CoreTaskArgs t; t.add_input(a, b); t.add_output(info); rt_submit_aiv_task(0, t);",
    )
    assert graph.ran
    assert "the orchestration reads what a task computes" in graph.why_ran
    assert graph.tasks["cycles"].all()
    assert [tuple(edge) for edge in graph.edges.tolist()] == [(0, 1, 1)]
    assert graph.golden is not None
    assert graph.golden.passed


def test_a_case_that_does_not_run_says_why(tmp_path):
    with pytest.raises(JobError, match="no kernel with func id 7"):
        graph_of(tmp_path, "CoreTaskArgs t; t.add_input(a, b); t.add_output(info); rt_submit_aiv_task(7, t);")


# adds as often as the first number of its second input says
STEERED = """
    auto *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto *numbers = reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
    for (int i = 0; i < 3 * static_cast<int>(numbers[0]); ++i) pipe_barrier(PIPE_ALL);
"""


def test_a_kernel_that_looks_at_its_input_is_timed_once_for_each_content(tmp_path):
    body = """uint32_t row[2] = {2, 64};
    for (uint32_t i = 0; i < 4; ++i) {
        uint32_t at[2] = {2 * i + 2, 0};
        ChipTensor view = a.view(row, at);
        CoreTaskArgs t; t.add_input(view); t.add_output(info); rt_submit_aiv_task(1, t);
    }"""
    scene = make_scene(tmp_path, body, STEERED)
    text = scene.read_text().replace(
        "return TaskArgsBuilder(", "import numpy as np\n        rows = np.ones((64, 64), np.float32)\n        "
        "rows[8] = 5\n        return TaskArgsBuilder(TensorArg('a', rows), "
    ).replace('for n in ("a", "b", "out")', 'for n in ("b", "out")')  # fmt: skip
    scene.write_text(text)
    done = run_case(RunRequest(scene), tmp_path / "run", Local(1))
    steered = [v for v in done.variants if v.job.job.name == "OWN" and v.timed.reads]
    # rows 2, 4 and 6 hold ones, row 8 a five
    assert sorted(len(v.tasks) for v in steered) == [1, 3]
    by_size = {len(v.tasks): v.timed.cycles for v in steered}
    assert by_size[1] > by_size[3]


def test_a_kernel_that_looks_at_what_another_wrote_has_all_kernels_run(tmp_path):
    scene = make_scene(
        tmp_path, "CoreTaskArgs t; t.add_input(out); t.add_output(info); rt_submit_aiv_task(1, t);", STEERED
    )
    done = run_case(RunRequest(scene), tmp_path / "run", Local(1))
    assert done.graph.ran
    assert "OWN looks at slot 0, which another kernel writes" in done.graph.why_ran
