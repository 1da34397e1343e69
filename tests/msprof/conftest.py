"""A CANN toolkit that is none: the documented folders, with stand-ins for its programs and libraries."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replay_cases import DATA

TOOLKIT = DATA / "toolkit"
LIBRARIES = ("runtime_camodel", "tiling_api", "platform", "c_sec", "nnopbase")


def make_toolkit(
    home: Path, libraries: Path, *, version: str = "8.5.0", socs=("dav_2201", "dav_3510")
) -> Path:
    """One installation. `libraries` holds what was compiled for it, or is empty where nothing is built."""
    triplet = home / "x86_64-linux"
    for folder in ("bin", "compiler", "lib64", "tools"):
        (home / folder).mkdir(parents=True)
    shutil.copytree(TOOLKIT / "include", home / "include")
    (home / "compiler/version.info").write_text(f"Version={version}\n")
    for soc in socs:
        lib = triplet / "simulator" / soc / "lib"
        lib.mkdir(parents=True)
        camodel = libraries / "libruntime_camodel.so"
        if camodel.exists():
            shutil.copy(camodel, lib)
        else:
            (lib / "libruntime_camodel.so").touch()
    (triplet / "simulator/common/lib").mkdir(parents=True, exist_ok=True)  # no camodel library: not a chip
    (home / "tools/simulator").symlink_to("../x86_64-linux/simulator")
    for library in libraries.glob("*.so"):
        if library.name != "libruntime_camodel.so":
            shutil.copy(library, home / "lib64")
    for name in ("msprof", "bisheng"):
        program = home / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{TOOLKIT}/standin_{name}.py" "$@"\n')
        program.chmod(0o755)
    (home / "set_env.sh").write_text(
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'
        'export ASCEND_HOME_PATH="$here" ASCEND_TOOLKIT_HOME="$here" PATH="$here/bin:$PATH"\n'
        'export LD_LIBRARY_PATH="$here/lib64:${LD_LIBRARY_PATH:-}"\n'
        "echo 'set_env.sh says hello'\n"
    )
    return home


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
