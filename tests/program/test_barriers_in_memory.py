"""Cores that wait for each other by words in global memory, as a library's barrier and its messages do."""

from pathlib import Path

import pytest

from tests.program.test_own_programs import HEAD, run_exec, run_program

KERNEL = """
using Word = Tile<TileType::Vec, int, 1, 8, BLayout::RowMajor>;
using Words = Tile<TileType::Vec, int, 1, 16, BLayout::RowMajor>;
using GlobalWord = GlobalTensor<int, Shape<1, 1, 1, 1, 8>, Stride<8, 8, 8, 8, 1>>;
using GlobalWords = GlobalTensor<int, Shape<1, 1, 1, 1, 16>, Stride<16, 16, 16, 16, 1>>;

// every core leaves a one behind its own row, and looks until all have
AICORE inline void barrier_by_transfers(__gm__ int *words) {
    Word mine;
    Words all;
    TASSIGN(mine, 0x1000);
    TASSIGN(all, 0x1100);
    mine.SetValue(0, 1);
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    GlobalWord to(words + get_block_idx() * 8);
    TSTORE(to, mine);
    for (;;) {
        GlobalWords from(words);
        TLOAD(all, from);
        set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
        const bool done = all.GetValue(0) == 1 && all.GetValue(8) == 1;
        set_flag(PIPE_S, PIPE_MTE2, EVENT_ID0);
        wait_flag(PIPE_S, PIPE_MTE2, EVENT_ID0);
        if (done) return;
    }
}
// the same, but looked at through the cache
AICORE inline void barrier_by_loads(__gm__ int *words) {
    Word mine;
    TASSIGN(mine, 0x1000);
    mine.SetValue(0, 1);
    set_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_MTE3, EVENT_ID0);
    GlobalWord to(words + get_block_idx() * 16);
    TSTORE(to, mine);
    for (int core = 0; core < 2; ++core)
        do dcci((__gm__ uint64_t *)(words + core * 16), SINGLE_CACHE_LINE);
        while (words[core * 16] != 1);
}
AICORE inline void no_barrier(__gm__ int *) {}

__global__ AICORE void neighbours(__gm__ float *x, __gm__ float *y, __gm__ int *words) {
#if defined(__DAV_VEC__)
    Row a;
    TASSIGN(a, 0);
    const int me = get_block_idx();
    Global mine(x + me * 64), other(x + (1 - me) * 64), to(y + me * 64);
    TEXPANDS(a, float(me + 1));
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(mine, a);
    pipe_barrier(PIPE_ALL);
    BARRIER(words);
    pipe_barrier(PIPE_ALL);
    TLOAD(a, other);
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID1);
    TSTORE(to, a);
#endif
}
int main() {
    aclInit(nullptr);
    aclrtSetDevice(0);
    float *x = on_device<float>(128), *y = on_device<float>(128), back[128];
    int *words = on_device<int>(64);
    aclrtMemset(words, 256, 0, 256);
    neighbours<<<2, nullptr, nullptr>>>(x, y, words);
    const int error = aclrtSynchronizeStream(nullptr);
    aclrtMemcpy(back, sizeof back, y, sizeof back, ACL_MEMCPY_DEVICE_TO_HOST);
    printf("error %d: %g %g\\n", error, back[0], back[127]);
}
"""


@pytest.mark.parametrize("barrier", ["barrier_by_transfers", "barrier_by_loads"])
def test_cores_that_wait_for_words_of_each_other_are_ordered(tmp_path: Path, barrier: str) -> None:
    ran = run_program(tmp_path, f"#define BARRIER {barrier}\n{HEAD}{KERNEL}", options=("-o", "traces"))
    assert ran.stdout.strip() == "error 0: 2 1", ran.stderr
    assert "nothing that orders" not in ran.stderr, ran.stderr


def test_without_the_barrier_the_same_cores_race(tmp_path: Path) -> None:
    ran = run_program(tmp_path, f"#define BARRIER no_barrier\n{HEAD}{KERNEL}", options=("-o", "traces"))
    assert "with nothing that orders the two cores" in ran.stderr, ran.stdout + ran.stderr


LOOKS_AT_ONCE = """
__global__ AICORE void first(__gm__ float *x, __gm__ float *y) {
#if defined(__DAV_VEC__)
    Row a, b;
    TASSIGN(a, 0);
    TASSIGN(b, 0x400);
    Global from(x), to(y);
    TLOAD(a, from);
    const float value = a.GetValue(0); // the look
    set_flag(PIPE_S, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_S, PIPE_V, EVENT_ID0);
    TEXPANDS(b, value);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, b);
#endif
}
int main() {
    aclrtSetDevice(0);
    float *x = on_device<float>(64), *y = on_device<float>(64);
    aclrtMemset(x, 256, 0, 256);
    first<<<1, nullptr, nullptr>>>(x, y);
    return aclrtSynchronizeStream(nullptr);
}
"""


@pytest.mark.parametrize(
    ("flags", "options", "said"),
    [
        ("", (), True),
        ("--cce-auto-sync", (), False),
        ("--cce-auto-sync=off", (), True),
        ("--cce-auto-sync", ("--check",), True),
    ],
)
def test_waits_of_the_scalar_unit_are_the_compilers_where_a_build_leaves_them_to_it(
    tmp_path: Path, flags: str, options: tuple[str, ...], said: bool
) -> None:
    (tmp_path / "program.cpp").write_text(HEAD + LOOKS_AT_ONCE)
    line = f"bisheng -xcce --npu-arch=dav-2201 -g {flags} program.cpp -o program -lascendcl && ./program"
    ran = run_exec(tmp_path, "sh", "-c", line, options=("-o", "traces", *options))
    assert ran.returncode == 0, ran.stderr
    assert ("with nothing that orders them" in ran.stderr) == said, ran.stderr
    assert ("has the vendor's compiler add that wait" in ran.stderr) == bool(options), ran.stderr
