"""The stand-in toolkit, built once, and an environment that knows nothing of CANN."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from standin_toolkit import TOOLKIT, make_toolkit

LIBRARIES = ("runtime_camodel", "tiling_api", "platform", "c_sec", "nnopbase")


@pytest.fixture(scope="session")
def built_libraries(tmp_path_factory) -> Path:
    missing = [name for name in ("g++", "cmake", "objcopy", "ld", "nm", "bash") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"the stand-in toolkit needs {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("libraries")
    build = ["g++", "-shared", "-fPIC", "-O0"]
    acl = ["-I", TOOLKIT / "include", TOOLKIT / "acl_on_host.cpp", "-o", folder / "libascendcl.so"]
    subprocess.run([*build, *acl], check=True)
    first = folder / f"lib{LIBRARIES[0]}.so"
    # The launch lives in the camodel library, as it does in the original.
    subprocess.run([*build, TOOLKIT / "launch_on_host.cpp", "-o", first], check=True)
    (folder / "empty.cpp").touch()
    subprocess.run([*build, folder / "empty.cpp", "-o", folder / "libempty.so"], check=True)
    for name in LIBRARIES[1:]:
        shutil.copy(folder / "libempty.so", folder / f"lib{name}.so")
    return folder


@pytest.fixture(scope="session")
def toolkit_home(built_libraries, tmp_path_factory) -> Path:
    return make_toolkit(tmp_path_factory.mktemp("Ascend") / "cann-8.5.0", built_libraries)


@pytest.fixture
def clean_environ() -> dict[str, str]:
    """An environment that knows nothing of CANN."""
    keep = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "LANG") if key in os.environ}
    return keep


@pytest.fixture(scope="session")
def pto_isa_root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("pto-isa")
    (root / "include").mkdir()
    return root
