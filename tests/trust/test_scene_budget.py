"""Reading a scene costs little, whatever it says: what asks for more is a note, in a moment and in little memory."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from insight_trace.__main__ import main
from insight_trace.errors import InputError, RequestError
from insight_trace.options import RunOptions
from insight_trace.scene.static import load_scene

HEAD = "class T(SceneTestCase):\n    CALLABLE = {'incores': []}\n"
DOUBLED = "A0 = [0]\n" + "".join(f"A{n + 1} = [A{n}, A{n}]\n" for n in range(40))
TUPLES = "A0 = (0,)\n" + "".join(f"A{n + 1} = (A{n}, A{n})\n" for n in range(40))

GREEDY = {
    "lists that share": DOUBLED + HEAD + "    CASES = [{'name': 'a', 'params': {'x': A40}}]\n",
    "copies of lists that share": DOUBLED + "import copy\nB = copy.deepcopy(A40)\n" + HEAD + "    CASES = [B]\n",
    "text of lists that share": DOUBLED + HEAD + "    CASES = [{'name': str(A40)}]\n",
    "an f-string of them": DOUBLED + HEAD + "    CASES = [{'name': f'{A40}'}]\n",
    "them compared": DOUBLED + TUPLES.replace("A", "B") + HEAD + "    CASES = [A40 == A39]\n",
    "tuples as keys": TUPLES + HEAD + "    CASES = [{A40: 1}]\n",
    "tuples in a set": TUPLES + HEAD + "    CASES = [{A40}]\n",
    "a comprehension of long lists": HEAD + "    CASES = [[0] * 1000000 for _ in range(100000)]\n",
    "nested comprehensions": HEAD + "    CASES = [i for i in range(9999) for j in range(9999) for k in range(9999)]\n",
    "texts": HEAD + "    CASES = ['x' * 1000000 for _ in range(100000)]\n",
    "a sum of lists": HEAD + "    CASES = sum([[0] * 100000] * 100000, [])\n",
    "joined lists": HEAD + "    CASES = " + "+".join(["[0] * 500000"] * 400) + "\n",
    "a power": HEAD + "    CASES = [9 ** 9 ** 9]\n",
    "powers of powers": HEAD + "    CASES = [" + "*".join(["(2 ** 4000)"] * 2000) + "]\n",
    "a shift": HEAD + "    CASES = [1 << 10 ** 9]\n",
    "a wide format": HEAD + "    CASES = [f'{1:99999999}']\n",
    "a loop in a function": "def f():\n    x = []\n    for i in range(1000000):\n        for j in range(1000000):\n"
    "            x.append(i)\n    return x\n" + HEAD + "    CASES = f()\n",
}  # fmt: skip

WRONG = {
    "an index past the end": "    ATOL = [][5]\n",
    "a remainder by zero": "    ATOL = 1 % 0\n",
    "a number of 5,000 digits": "    ATOL = int('9' * 5000)\n",
    "a missing key": "    RTOL = {}['x']\n",
    "a wrong type": "    RTOL = 'a' + 1\n",
    "itself": "    RTOL = RTOL\n",
}


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def test_greedy_scenes_are_read_within_five_seconds_and_a_gigabyte(tmp_path):
    code = (
        "import sys, time\nfrom insight_trace.scene.static import load_scene\n"
        "for path in sys.argv[1:]:\n    begin = time.process_time()\n    load_scene(path).notes\n"
        "    print(path, round(time.process_time() - begin, 2))\n"
    )
    paths = []
    for number, text in enumerate(GREEDY.values()):
        path = tmp_path / f"scene_{number}.py"
        path.write_text(text)
        paths.append(str(path))
    words = [sys.executable, "-c", code, *paths]
    done = subprocess.run(words, preexec_fn=_limited, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    times = {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines()}
    assert len(times) == len(GREEDY)
    assert max(times.values()) < 5, times


@pytest.mark.parametrize("name", WRONG)
def test_a_constant_that_cannot_be_computed_is_a_note(tmp_path, name):
    scene = tmp_path / "scene.py"
    scene.write_text(HEAD + "    CASES = []\n" + WRONG[name])
    assert load_scene(scene).atol == 1e-5


def test_a_scene_of_gigabytes_is_not_read(tmp_path):
    path = tmp_path / "scene.py"
    with path.open("wb") as file:
        file.truncate(8 << 30)
    with pytest.raises(InputError, match="at most"):
        load_scene(path)


def test_blocks_without_end_are_refused(tmp_path):
    with pytest.raises(RequestError, match="at most"):
        RunOptions(blocks=100_000_000)


def test_a_dump_of_a_hundred_million_blocks_is_refused_before_anything_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scene = str(Path(__file__).parents[2] / "examples" / "spmd_multiblock" / "scene.py")
    assert main(["capture", scene, "-o", "dump"]) == 0
    for manifest in Path("dump/args_dump").glob("*.json"):
        text = manifest.read_text()
        manifest.write_text(text.replace('"block_count":4', '"block_count":100000000'))
    assert "100000000" in Path("dump/args_dump/args_dump.json").read_text()
    assert main(["dump", "list", "dump"]) == 0
    capsys.readouterr()
    assert main(["replay", scene, "--func-id", "0", "--dump-dir", "dump"]) == 2
    assert "100,000,000 blocks of 1 kernels are more than the 4,096 cores" in capsys.readouterr().err
    assert not list(Path().glob("outputs/*"))
