"""A CANN toolkit that is none: the documented folders, with stand-ins for its programs and libraries."""

import shutil
import sys
from pathlib import Path

from replay_cases import DATA

TOOLKIT = DATA / "toolkit"
# what is no device code goes to g++ at once: cmake asks a compiler a dozen questions before it builds
_HOST_CODE = """\
case " $* " in *" -xcce "*) ;; *)
  tool=g++ skip=
  for word do
    shift
    case $word in
      -mllvm) skip=1 ;;
      --cce*|-fenable-matrix*|-Xhost*|-Wno-macro-redefined*|-O2) ;;
      *) case $word in *.c) tool=gcc ;; esac
         if [ "$skip" ]; then skip=; else set -- "$@" "$word"; fi ;;
    esac
  done
  exec $tool "$@" ;;
esac
"""


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
        head = _HOST_CODE if name == "bisheng" else ""
        run = f'exec "{sys.executable}" -I -S "{TOOLKIT}/standin_{name}.py" "$@"'
        program.write_text(f"#!/bin/sh\n{head}{run}\n")
        program.chmod(0o755)
    (home / "set_env.sh").write_text(
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\n'
        'export ASCEND_HOME_PATH="$here" ASCEND_TOOLKIT_HOME="$here" PATH="$here/bin:$PATH"\n'
        'export LD_LIBRARY_PATH="$here/lib64:${LD_LIBRARY_PATH:-}"\n'
        "echo 'set_env.sh says hello'\n"
    )
    return home
