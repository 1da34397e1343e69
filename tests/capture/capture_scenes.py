"""Scenes for the tests of capture: our examples, and small ones made up around an orchestration."""

from collections.abc import Collection
from pathlib import Path

from insight_trace.cache import content_key

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CHAIN_KERNELS = EXAMPLES / "vector_chain" / "kernels"

_SCENE = """
import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class MadeUp(SceneTestCase):
    CALLABLE = {{
        "orchestration": {{
            "source": "{orchestration}",
            "function_name": "{entry}",
            "signature": [D.IN, D.IN, D.OUT],
        }},
        "incores": [
            {{"func_id": 0, "name": "ADD", "source": "{add}", "core_type": "aiv",
              "signature": [D.IN, D.IN, D.OUT]}},
            {{"func_id": 1, "name": "OWN", "source": "{own}", "core_type": "aiv"}},
        ],
    }}
    CASES = [
        {{"name": "Default", "platforms": ["a2a3sim"], "params": {{}}}},
        {{"name": "Other", "platforms": ["a2a3"], "params": {{}}}},
    ]

    def generate_args(self, params):
        return TaskArgsBuilder(*(TensorArg(n, np.ones((64, 64), np.float32)) for n in ("a", "b", "out")))

    def compute_golden(self, args, params):
        args.out[:] = 2
"""

_HEADERS = """
#include <stdexcept>
#include "pto_orchestration_api.h"
"""
_ENTRY = """
extern "C" void {name}(const ChipTaskArgs &args) {{
    const ChipTensor &a = args.tensor(0).ref();
    const ChipTensor &b = args.tensor(1).ref();
    const ChipTensor &out = args.tensor(2).ref();
    uint32_t shape[2] = {{64, 64}};
    TensorCreateInfo info(shape, 2);
    CoreTaskArgs task;
    task.add_input(a, b);
    task.add_output(out);
    rt_submit_aiv_task(0, task);
    {body}
}}
"""

_KERNEL = """
#include "tiles.hpp"
#include "intrinsic.h"
#include "pto_async_kernel_api.h"
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{
    {body}
}}
"""


def make_scene(folder: Path, body: str, kernel: str = "", among: Collection[str] = ()) -> Path:
    """A scene that adds two tensors, then does what `body` says. Func id 1 does what `kernel` says.

    Sources lie by their content beside `folder`, where scenes of other tests have the same ones. `among` are bodies that
    one source has with this one, a function each: it is compiled once for all of them.
    """
    bodies = list(among or [body])
    entries = [_ENTRY.format(name=_entry_name(n), body=text) for n, text in enumerate(bodies)]
    tiles = (CHAIN_KERNELS / "tiles.hpp").as_posix()
    own = _by_content(folder, "own", _KERNEL.format(body=kernel).replace("tiles.hpp", tiles))
    orchestration = _by_content(folder, "orchestration", "".join([_HEADERS, *entries]))
    scene = folder / "scene.py"
    entry = _entry_name(bodies.index(body))
    scene.write_text(
        _SCENE.format(add=CHAIN_KERNELS / "add.cpp", own=own, orchestration=orchestration, entry=entry)
    )
    return scene


def _entry_name(number: int) -> str:
    return f"aicpu_orchestration_entry_{number}"


def _by_content(folder: Path, name: str, text: str) -> Path:
    place = folder.parent / f"sources_{content_key([text])}"
    place.mkdir(exist_ok=True)
    source = place / f"{name}.cpp"
    if not source.exists():
        source.write_text(text, encoding="utf-8")
    return source


def orchestration_of(scene: Path) -> tuple[Path, str]:
    """The source of a scene that was made here, and the name of its function."""
    text = scene.read_text()
    return Path(text.partition('"source": "')[2].partition('"')[0]), text.partition('"function_name": "')[
        2
    ].partition('"')[0]


def line_of(path: Path, text: str, after: str = "") -> int:
    """The first line that has `text`, behind the one that has `after`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = next(number for number, line in enumerate(lines) if after in line)
    return next(number for number, line in enumerate(lines, 1) if number > begins and text in line)


def orchestration_line(scene: Path, text: str) -> int:
    """The line of a made scene's orchestration that has `text`, in the scene's own function."""
    source, entry = orchestration_of(scene)
    return line_of(source, text, f" {entry}(")
