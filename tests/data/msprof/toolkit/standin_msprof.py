"""Stands for `msprof op simulator`: its options, words, folders and its exit code, 0 even after failures.

STANDIN_MSPROF chooses the release and the failure:
  new          writes simulator/ while collecting
  old          leaves logs only, which need --export
  old_nothing  like old, and exports nothing
  many         several launches
  slow         stops at --timeout and parses what it has
  hang         never ends, nor does what it started
  silent       writes nothing
  empty        an empty dump
  no_worker    its worker is missing
  needs_worker its worker must be a real file below ASCEND_HOME_PATH
The application is really run. STANDIN_CALLS names a file that gets each command line, STANDIN_RESULT a
simulator folder to give as the result.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

MODE = os.environ.get("STANDIN_MSPROF", "new")
OPTIONS = ("application", "export", "output", "soc-version", "kernel-name", "launch-count", "timeout")
RUN = "OPPROF_20261115120000_ABCDEFGHIJKLMNOP"
EXPORTED = "OPPROF_20261115120100_PONMLKJIHGFEDCBA"


def say(kind, text):
    print(f"[{kind}]".ljust(8) + text, flush=True)


def refuse(text):
    say("ERROR", text)
    return 255


def write_result(folder):
    if "STANDIN_RESULT" in os.environ:
        shutil.copytree(os.environ["STANDIN_RESULT"], folder / "simulator")
        say("INFO", f"Profiling results saved in {folder}")
        return
    core = folder / "simulator/core0.veccore0"
    core.mkdir(parents=True)
    trace = {"traceEvents": [], "schemaVersion": 2}
    (folder / "simulator/trace.json").write_text(json.dumps(trace))
    (folder / "simulator/visualize_data.bin").write_bytes(b"\x5a" * 16)
    (core / "trace.json").write_text(json.dumps(trace))
    (core / "core0.veccore0_instr_exe.csv").write_text("instr,addr,pipe,call_count,cycles\n")
    say("INFO", f"Profiling results saved in {folder}")


def write_logs(folder):
    folder.mkdir(parents=True)
    (folder / "core0.veccore0.instr_log.dump").write_text("[info] [00000001] (PC: 0x10000000) VECTOR\n")


def collect(options):
    application = Path(options["application"])
    if not (application.is_file() and os.access(application, os.X_OK)) or " " in options["application"]:
        return refuse("application to be profiled is not exist or not executable.")
    if not re.fullmatch(r"[A-Za-z0-9_*|]+", options.get("kernel-name", "x")):
        return refuse("--kernel-name is invalid")
    if not 1 <= int(options.get("timeout", "1")) <= 2880:
        return refuse("--timeout should be within [1, 2880]")
    if not 1 <= int(options.get("launch-count", "1")) <= 5000:
        return refuse("--launch-count should be within [1, 5000]")
    soc = options.get("soc-version")
    if soc and not (Path(os.environ["ASCEND_HOME_PATH"]) / "tools/simulator" / soc).is_dir():
        return refuse(
            "--soc-version is invalid, please specify a simulator in $ASCEND_HOME_PATH/tools/simulator"
        )
    if soc and f"/{soc}/lib" not in os.environ.get("LD_LIBRARY_PATH", ""):
        say("ERROR", "Failed to load simulator so, please check your LD_LIBRARY_PATH")
        return 0
    if MODE == "silent":
        say("ERROR", "No profiling data dumped.")
        return 0
    run = Path(options["output"]) / RUN
    run.mkdir(parents=True)
    if MODE == "hang":
        write_logs(run / "device0/tmp_dump")
        (run / "device0/tmp_dump/pc_start_addr.txt").write_text("0x10f86000")
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
        )
        Path("standin_pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    done = subprocess.run([application.resolve()])
    if MODE == "slow":
        say("WARN", "The timeout has reached and the application will be forcibly killed.")
        write_result(run)
        return 0
    if done.returncode:
        say("WARN", "Profiling running finished. May cause generating performance files to fail.")
        (run / "dump").mkdir()
        say("ERROR", "Profiling results are empty. No kernel profiling data was generated")
        return 0
    say("INFO", "Profiling running finished. All task success.")
    if MODE == "empty":
        (run / "dump").mkdir()
        say("ERROR", "Failed to get any available dump file to parse, please check")
    elif MODE.startswith("old"):
        write_logs(run / "device0/tmp_dump")
        (run / "device0/pc_start_addr.txt").write_text("0x10f86000")
    elif MODE == "many":
        for launch in ("0", "1"):
            write_result(run / "replay_entry" / launch)
    else:
        (run / "dump").mkdir()
        (run / "dump/pc_start_addr.txt").write_text("0x10f86000")
        write_result(run)
        say("INFO", "Profiling data parse finished.")
    return 0


def export(options):
    source = Path(options["export"])
    if not source.is_dir() or not any(source.iterdir()):
        say(
            "ERROR",
            "In profiling data processing, dir is invalid, "
            "maybe dir is not exist or empty or contains too many files",
        )
    elif not (source / "pc_start_addr.txt").is_file() or MODE == "old_nothing":
        say("ERROR", "Failed to get any available dump file to parse, please check")
        say("ERROR", "Profiling data parse failed. Please check")
    else:
        write_result(Path(options["output"]) / EXPORTED)
        say("INFO", "Profiling data parse finished.")
    return 0


def main():
    words = sys.argv[1:]
    if "STANDIN_CALLS" in os.environ:
        with Path(os.environ["STANDIN_CALLS"]).open("a") as calls:
            calls.write(json.dumps(words) + "\n")
    if words[:2] != ["op", "simulator"]:
        return refuse("only op simulator is known")
    if MODE == "no_worker":
        say("ERROR", "Cannot find msopprof in the toolkit")
        return 0
    worker = Path(os.environ.get("ASCEND_HOME_PATH", "/"), "tools/msopprof/bin/msopprof")
    if MODE == "needs_worker" and (worker.is_symlink() or not os.access(worker, os.X_OK)):
        say("ERROR", f"{worker} is soft link" if worker.is_symlink() else "Cannot find msopprof")
        return 0
    if words[2:] == ["--help"]:
        print("Usage: msopprof simulator [Options:]\nOptions:\n  --application=<app>\n  --export=<dir>")
        return 0
    options = {}
    for word in words[2:]:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not equals or name not in OPTIONS:
            return refuse(f"unrecognized option '{word}'")
        options[name] = value
    if "ASCEND_HOME_PATH" not in os.environ:
        return refuse("$ASCEND_HOME_PATH not found")
    if ("application" in options) == ("export" in options):
        return refuse(
            "Input parameter config, export and application can not be used together "
            "or empty at the same time"
        )
    if len(options.get("output", "./")) > 200:
        return refuse("--output is too long")
    code = collect(options) if "application" in options else export(options)
    if code == 0:
        say("INFO", "Op profiling finish. Welcome to next use.")
    return code


sys.exit(main())
