"""`msprof op simulator`, `cannsim` and `npusim` in the environment of `insight-trace exec`.

The program runs as by `exec`, and the Insight directories go where these tools put them.
"""

from __future__ import annotations

import datetime
import json
import os
import random
import re
import shlex
import shutil
import string
import sys
from collections.abc import Sequence
from pathlib import Path

from insight_trace import supervisor
from insight_trace.chips import TARGETS, family_named, load_chip
from insight_trace.errors import InsightTraceError, RequestError
from insight_trace.program.products import Product, make_products
from insight_trace.program.session import ProgramOptions, Ran, run_program
from insight_trace.simulate.embedded.entry_link import tool

_MSPROF_VALUES = frozenset(
    {
        "config",
        "application",
        "export",
        "output",
        "kernel-name",
        "launch-count",
        "aic-metrics",
        "mstx",
        "mstx-include",
    }
    | {"soc-version", "core-id", "timeout", "dump"}
)


def main(arguments: list[str] | None = None) -> int:
    """The tool whose name this was called by."""
    given = sys.argv[1:] if arguments is None else arguments
    name = Path(sys.argv[0]).name
    try:
        if name == "msprof":
            return _msprof(given)
        if name == "msopprof":
            return _msprof(["op", *given])
        if name == "mssanitizer":
            raise RequestError(
                "mssanitizer is not simulated",
                hint="insight-trace exec --check -- PROGRAM finds accesses out of bounds, races and bytes that nobody wrote",
            )
        if name == "npu-smi":
            return _npu_smi()
        return _cannsim(given)
    except InsightTraceError as error:
        print(f"insight-trace: {error}", file=sys.stderr)
        return error.exit_code


# --- msprof op simulator --------------------------------------------------------------------------------


def _msprof(words: Sequence[str]) -> int:
    if list(words[:2]) != ["op", "simulator"]:
        return _unprofiled(words)
    if {"--help", "-h"} & set(words[2:3]):
        print(
            "msprof op simulator as insight-trace has it: the program runs on the simulated chip.\n\nOptions:"
        )
        print("\n".join(f"  --{name}=<value>" for name in sorted(_MSPROF_VALUES)))
        return 0
    values, command = _split(words[2:])
    if "export" in values:
        raise RequestError(
            "msprof op simulator --export: a run here leaves no logs to export, its Insight directory is there at once",
            hint="`insight-trace export DUMP -o OUT` reads logs of the vendor's simulator",
        )
    if "application" in values:
        command = shlex.split(values["application"])
    if not command:
        raise RequestError(
            "msprof op simulator: there is no program to run", hint='--application="./program arguments"'
        )
    count = int(values.get("launch-count", "1"))
    names = values.get("kernel-name", "")
    options = ProgramOptions(
        soc_version=_chip(values.get("soc-version") or os.environ.get("CAMODEL_SOC_VERSION") or ""),
        preset="camodel",
        trace="all",
        kernel_name=_pattern(names),
        launch_count=count,
        seconds=60.0 * float(values.get("timeout", "60")),
    )
    output = Path(values.get("output", "."))
    with run_program(command, options) as ran:
        stamp = datetime.datetime.now().strftime("%Y%m%d%H%M%S")
        letters = "".join(random.choices(string.ascii_uppercase, k=16))
        opened = output / f"OPPROF_{stamp}_{letters}"
        products = _products(ran, options, opened)
        made = [one for one in products if one.directory]
        if not made:
            print("[ERROR] no kernel was launched, or none that --kernel-name names", file=sys.stderr)
            return ran.code or 1
        print(f"[INFO]  Profiling results saved in {opened.resolve()}")
        return ran.code


def _unprofiled(words: Sequence[str]) -> int:
    """`msprof` and `msprof op`, which profile on a device: the program runs, and `exec` around it traces its launches."""
    rest = list(words[1:] if words[:1] == ["op"] else words)
    tool_name = "msprof op" if words[:1] == ["op"] else "msprof"
    command: list[str] = []
    while rest and rest[0].startswith("-"):
        name, found, value = rest.pop(0).lstrip("-").partition("=")
        if not found and name in _MSPROF_VALUES and rest:
            value = rest.pop(0)
        if name == "application":
            command = shlex.split(value)
    command = command or rest
    if not command:
        raise RequestError(
            f"{tool_name} is not simulated: there is no device to profile, and no program to run was named",
            hint="`msprof op simulator` runs on the simulated chip",
        )
    if not shutil.which(command[0]):
        raise RequestError(f"{tool_name}: {command[0]} is no program that can be run")
    print(
        f"insight-trace: {tool_name} profiles on a device and writes nothing here; the program runs on the simulated chip, "
        "and `insight-trace exec` traces its launches",
        file=sys.stderr,
    )
    return supervisor.in_foreground(command)


def _chip(name: str) -> str | None:
    """A chip by its name, or by the folder of a simulator, which is one family's."""
    families = {f"dav_{family_named(target).npu_arch}": target for target in TARGETS}
    target = families.get(name.casefold())
    return load_chip(None, target=target).name if target else name or None


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options of msprof, and the program behind them."""
    values: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("--"):
        name, found, value = rest.pop(0)[2:].partition("=")
        if name not in _MSPROF_VALUES:
            raise RequestError(f"msprof op simulator has no option --{name}")
        values[name] = value if found else rest.pop(0) if rest else ""
    return values, rest


def _pattern(names: str) -> str:
    """`add|abs*` as a regular expression: beginnings of names, with wildcards; mangled names are those of functions."""
    plain = [_demangled(name) if name.startswith("_Z") else name for name in names.split("|") if name]
    parts = [re.escape(name).replace(r"\*", ".*") for name in plain]
    return "^(" + "|".join(parts) + ")" if parts else ""


def _demangled(name: str) -> str:
    return re.split(r"[<(]", tool(["c++filt", name]).strip())[0].split("::")[-1]


def _products(ran: Ran, options: ProgramOptions, opened: Path) -> list[Product]:
    """The Insight directories of the launches, laid out as msprof does; the workspaces themselves go."""
    workspaces = ran.folder / "workspaces"
    products = make_products(ran, options, workspaces)
    made = [one for one in products.values() if one.directory]
    numbers: dict[str, int] = {}
    for one in made:
        assert one.directory is not None
        number = numbers[one.kernel] = numbers.get(one.kernel, -1) + 1
        place = opened if len(made) == 1 else opened / "device0" / one.kernel / str(number)
        place.mkdir(parents=True, exist_ok=True)
        (place / "dump").mkdir(exist_ok=True)
        shutil.copytree(one.directory, place / "simulator", dirs_exist_ok=True)
    for one in products.values():
        if one.error:
            print(f"[WARN]  {one.kernel}: {one.error}", file=sys.stderr)
    return list(products.values())


# --- cannsim, npusim ------------------------------------------------------------------------------------


def _cannsim(words: Sequence[str]) -> int:
    rest = list(words)
    if not rest or rest.pop(0) != "record":
        raise RequestError(
            "record is what runs a program", hint='npusim record APP -s SOC [-g] [-o DIR] [-u "arguments"]'
        )
    app, chip, output, extra = "", "", Path("npusim_output"), ""
    while rest:
        word = rest.pop(0)
        if word in ("-s", "--soc-version", "--soc"):
            chip = rest.pop(0) if rest else ""
        elif word in ("-o", "--output"):
            output = Path(rest.pop(0) if rest else ".")
        elif word in ("-u", "--user-option"):
            extra = rest.pop(0) if rest else ""
        elif word in ("-g", "--gen-report"):
            continue
        elif not app:
            app = word
        else:
            raise RequestError(f"'{word}' is not known")
    if not app:
        raise RequestError("there is no program to run")
    command = [*shlex.split(app), *shlex.split(extra)]
    if command[0].endswith(".py"):
        command.insert(0, "python3")
    options = ProgramOptions(soc_version=_chip(chip), preset="camodel", trace="all", seconds=3600.0)
    with run_program(command, options) as ran:
        products = make_products(ran, options, ran.folder / "workspaces")
        results = output / "report" / "results"
        for number, one in enumerate(one for one in products.values() if one.directory):
            assert one.directory is not None
            place = results / f"kernel_{number}_{one.kernel}_reports"
            place.mkdir(parents=True, exist_ok=True)
            cores = sorted(one.directory.glob("core*/trace.json"))
            for core in cores:
                shutil.copyfile(core, place / f"trace_{core.parent.name}.json")
            summary = {"kernel": one.kernel, "cores": [core.parent.name for core in cores]}
            (place / "summary.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
            shutil.copytree(one.directory, place / "simulator", dirs_exist_ok=True)
        print(f"results in {results.resolve()}")
        return ran.code


def _npu_smi() -> int:
    print("insight-trace: a simulated chip, no device")
    return 0
