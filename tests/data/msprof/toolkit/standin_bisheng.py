"""Stands for bisheng on device code, which is compiled for the host once per kind of core.

STANDIN_BISHENG=no_tl makes it a compiler from before the tile language, no_g one that refuses -g.
STANDIN_COMPILES names a file that gets each command line for device code.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DROPPED = ("--cce", "-fenable-matrix", "-Xhost", "-xcce", "-Wno-macro-redefined")


def host_flags(words):
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word == "-mllvm":
            skip = True
        elif not word.startswith(DROPPED):
            kept.append(word)
    return kept


def compile_device(words):
    source = next(word for word in words if word.endswith(".cpp"))
    text = Path(source).read_text()
    if "__biasbuf__" in text:
        if os.environ.get("STANDIN_BISHENG") == "no_tl":
            print(f"{source}:1:1: error: unknown type name '__biasbuf__'")
            return 1
        return 0
    if not any(word.startswith("--cce-aicore-arch=dav-c") for word in words):
        print("error: no --cce-aicore-arch")
        return 1
    if "STANDIN_COMPILES" in os.environ:
        with Path(os.environ["STANDIN_COMPILES"]).open("a") as compiles:
            compiles.write(json.dumps(words) + "\n")
    if os.environ.get("STANDIN_BISHENG") == "no_g" and "-g" in words:
        print("bisheng: error: unknown argument: '-g'")
        return 1
    if not Path(source).name.startswith("replay_"):
        return compile_launched(words, source, text)
    output = words[words.index("-o") + 1]
    flags = [*host_flags(words), "-include", str(HERE / "cce_on_host.h"), "-w"]
    flags[flags.index("-o") + 1] = "PASS"
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for core in ("host", "cube", "vec"):
            if core != "host" and "launch" in Path(source).name:
                continue
            target = f"{folder}/{core}.o"
            own = (
                [] if core == "host" else [f"-D__DAV_{core.upper()}__", f"-Dreplay_entry=replay_entry_{core}"]
            )
            passed = [target if word == "PASS" else word for word in flags]
            code = subprocess.run(["g++", *passed, *own]).returncode
            if code:
                return code
            if core != "host":  # both cores may define kernel_entry
                subprocess.run(["objcopy", f"--keep-global-symbol=replay_entry_{core}", target], check=True)
            objects.append(target)
        return subprocess.run(["ld", "-r", "-o", output, *objects]).returncode


def compile_launched(words, source, text):
    """A launch becomes a call; a kernel is one function in which each kind of core has its turn."""
    cores = ["-D__DAV_CUBE__", "-D__DAV_VEC__", f"-I{Path(source).parent}"]
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, Path(source).name)
        plain.write_text(f'#line 1 "{source}"\n' + re.sub(r"<<<[^>]*>>>", "", text))
        passed = [str(plain) if word == source else word for word in host_flags(words)]
        flags = ["-include", str(HERE / "cce_on_host.h"), "-w", "-O0"]
        return subprocess.run(["g++", *passed, *flags, *cores]).returncode


sys.exit(compile_device(sys.argv[1:]))
