"""The device's library, compiled at first use against the torch that is imported."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def library() -> Path:
    """A folder with include/ and lib/libtorch_npu.so for this torch."""
    import torch

    toolkit = os.environ.get("INSIGHT_TRACE_TOOLKIT")
    if not toolkit:
        raise ImportError(
            "this torch_npu belongs to `insight-trace exec -- COMMAND`: run the program by that"
        )
    sources = sorted(
        path for path in _HERE.rglob("*") if path.suffix in (".cpp", ".h") or path.name == "_build.py"
    )
    digest = hashlib.sha256(torch.__version__.encode() + str(torch.__file__).encode())
    for path in sources:
        digest.update(path.read_bytes())
    cache = Path(os.environ.get("INSIGHT_TRACE_PROGRAM_CACHE", Path.home() / ".cache" / "insight-trace"))
    place = cache / "torch" / digest.hexdigest()[:24]
    made = place / "lib" / "libtorch_npu.so"
    if made.is_file():
        return place
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_file():
            _compile(
                Path(torch.__file__).parent, Path(toolkit), place, made, bool(torch._C._GLIBCXX_USE_CXX11_ABI)
            )
    return place


def _compile(torch: Path, toolkit: Path, place: Path, made: Path, new_abi: bool) -> None:
    import sys

    compiler = os.environ.get("CXX", "").split() or [shutil.which("g++") or shutil.which("clang++") or "g++"]
    if "bisheng" in compiler[0]:
        compiler = ["g++"]
    made.parent.mkdir(exist_ok=True)
    include = place / "include"
    if not include.exists():
        include.symlink_to(_HERE / "include")
    part = made.with_suffix(f".{os.getpid()}")
    words = [
        *compiler, "-std=c++20", "-O0", "-g0", "-fPIC", "-shared", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={int(new_abi)}",
        f"-I{_HERE / 'include'}", f"-I{toolkit / 'include'}", f"-I{torch / 'include'}",
        f"-I{torch / 'include' / 'torch' / 'csrc' / 'api' / 'include'}", str(_HERE / "csrc" / "device.cpp"), "-o", str(part),
        f"-L{torch / 'lib'}", "-Wl,--no-as-needed", "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10",
        f"-L{toolkit / 'lib64'}", "-linsight_trace_runtime",
        f"-Wl,-rpath,{torch / 'lib'}", "-Wl,-soname,libtorch_npu.so",
    ]  # fmt: skip
    print("insight-trace: compiling torch's npu device, once for this torch", file=sys.stderr, flush=True)
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise ImportError(f"torch's npu device does not compile with this torch:\n{done.stderr[:3000]}")
    part.rename(made)
