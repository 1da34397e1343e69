"""Gives every reader mutated inputs and counts what comes of it.

    python tools/mutate_readers.py --seconds 60 [--inputs N | --each N] [--reader NAME]... [--jobs 2] [--seed 0]
                                   [--keep DIR] [--json FILE]

For each reader: inputs, those that were read, those refused with an error of ours, and what must be 0: other
exceptions, inputs that took more than 5 s of CPU or 1 GB of memory. Inputs of the last three are kept in DIR.
With `--inputs` rounds of `--seconds` follow each other, each with other dice, until there were that many; with
`--each` until every reader had that many, and only those that have not take part.
`--atheris` lets atheris drive one reader instead, where it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_TOKENS = [
    b"null", b"true", b"-1", b"0", b"1e308", b"-1e308", b"NaN", b"Infinity", b"1e18", b"9" * 400, b"9" * 5000, b'""',
    b"[]", b"{}", b"[" * 2000, b'{"a":' * 2000, b"18446744073709551616", b"-9223372036854775809", b"\x00", b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r", b"\n", b"\t", b"0x", b"0xffffffffffffffffffff", b"%s", b"..", b"/dev/zero", b"\\u0000", b"\\ud800",
    b"1.5", b"1e-400", b'"\\n"', b"2147483648", b"4294967296", b",", b":", b"(", b")", b"<", b">",
]  # fmt: skip
COUNTED = ("inputs", "read", "refused", "foreign", "slow", "large")
WRONG = ("foreign", "slow", "large")
_LONGER = 0.05  # of the inputs come from a seed as long as a real file
_SLOW_SECONDS = 5.0
_MEMORY = 1 << 30


def mutated(seed: bytes, dice: random.Random) -> bytes:
    """One to a few changes of a seed: flips, cuts, repeats, swaps, tokens, numbers."""
    data = bytearray(seed)
    for _ in range(1 if dice.random() < 0.6 else dice.randint(2, 6)):
        if not data:
            data += dice.choice(_TOKENS)
        at = dice.randrange(len(data))
        kind = dice.randrange(9)
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at] = dice.randrange(256)
        elif kind == 2:
            del data[at : at + dice.choice((1, 2, 8, 64))]
        elif kind == 3:
            piece = data[at : at + dice.choice((1, 8, 64))]
            data[at:at] = piece * dice.choice((1, 2, 50))
        elif kind == 4:
            data[at:at] = dice.choice(_TOKENS)
        elif kind == 5:
            del data[at:]
        elif kind == 6:  # a whole number or word is replaced
            end = at
            while end < len(data) and chr(data[end]).isalnum():
                end += 1
            data[at:end] = dice.choice(_TOKENS)
        elif kind == 7:
            other = dice.randrange(len(data))
            size = dice.choice((1, 4, 32))
            data[at : at + size], data[other : other + size] = (
                data[other : other + size],
                data[at : at + size],
            )
        else:
            data[at : at + 8] = dice.choice((0, 1, 2**31, 2**63, 2**64 - 1)).to_bytes(8, "little")
    return bytes(data)


class _TooSlow(BaseException):
    """An input took its five seconds."""


def _work(name: str, seconds: float, seed: int, folder: Path, keep: Path | None) -> dict[str, object]:
    from tests.trust.reader_targets import TARGETS, place

    from insight_trace.errors import InsightTraceError

    target = TARGETS[name]
    path = place(folder, target)
    dice = random.Random(f"{name}-{seed}")
    counts = dict.fromkeys(COUNTED, 0)
    kinds: dict[str, str] = {}
    for given in target.seeds:  # the seeds themselves are good
        path.write_bytes(given)
        target.read(path)
    used = _most_memory()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * _MEMORY, used + 3 * _MEMORY))
    warnings.simplefilter("ignore")

    def late(*_: object) -> None:
        raise _TooSlow

    signal.signal(signal.SIGVTALRM, late)
    handle = os.open(path, os.O_WRONLY)
    end = time.monotonic() + seconds
    first, *longer = target.seeds
    while time.monotonic() < end:
        seed_of_this = dice.choice(longer) if longer and dice.random() < _LONGER else first
        content = mutated(seed_of_this, dice)
        os.ftruncate(handle, 0)
        os.pwrite(handle, content, 0)
        counts["inputs"] += 1
        wrong = said = ""
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, _SLOW_SECONDS)
            target.read(path)
            counts["read"] += 1
        except InsightTraceError:
            counts["refused"] += 1
        except _TooSlow as slow:
            counts["slow"] += 1
            wrong = f"slow at {_place(slow)}"
        except Exception as error:
            counts["foreign"] += 1
            wrong, said = f"{type(error).__name__} at {_place(error)}", str(error)[:200]
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if (now := _most_memory()) > used + _MEMORY:
            counts["large"] += 1
            wrong = wrong or "large"
            used = now
        if wrong and wrong not in kinds:
            kinds[wrong] = said
            if keep is not None:
                label = "".join(c if c.isalnum() else "_" for c in wrong)[:80]
                (keep / f"{name}-{label}").write_bytes(content)
    os.close(handle)
    return {"reader": name, **counts, "kinds": kinds}


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _place(error: BaseException) -> str:
    """The innermost line of ours that an exception passed."""
    frames = traceback.extract_tb(error.__traceback__)
    inner = ([f for f in frames if "insight_trace" in f.filename] or frames)[-1]
    return f"{Path(inner.filename).name}:{inner.lineno}"


def _atheris(name: str, rest: list[str]) -> None:
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["insight_trace"]):  # all of NumPy would take minutes
        from tests.trust.reader_targets import TARGETS, place

        from insight_trace.errors import InsightTraceError
    target = TARGETS[name]
    scratch = Path(tempfile.mkdtemp(prefix="insight-trace-fuzz-"))
    path = place(scratch / "reader", target)
    corpus = scratch / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)

    def one(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(InsightTraceError):
            target.read(path)

    atheris.Setup([sys.argv[0], *rest, str(corpus)], one)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for all readers together (default 60)")
    parser.add_argument("--inputs", type=int, default=0, help="rounds follow until there were so many")
    parser.add_argument("--each", type=int, default=0, help="rounds follow until every reader had so many")
    parser.add_argument("--reader", action="append", default=[], help="only this one (repeatable)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for inputs that went wrong")
    parser.add_argument("--json", type=Path, help="counts go here too")
    parser.add_argument("--atheris", metavar="READER")
    parser.add_argument("rest", nargs="*", help="options of atheris, after --")
    options = parser.parse_args()
    if options.atheris:
        _atheris(options.atheris, options.rest)
        return 0
    from tests.trust.reader_targets import TARGETS

    names = options.reader or list(TARGETS)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    totals: dict[str, dict[str, Any]] = {n: {**dict.fromkeys(COUNTED, 0), "kinds": {}} for n in names}
    number = options.seed
    while True:
        short = [name for name in names if totals[name]["inputs"] < options.each] or names
        for told in _round(short, options.seconds, number, options.jobs, options.keep):
            total = totals[told["reader"]]
            total["kinds"] |= told["kinds"]
            for key in COUNTED:
                total[key] += told.get(key, 0)
        number += 1
        everything = {key: sum(total[key] for total in totals.values()) for key in COUNTED}
        if options.json:
            options.json.write_text(json.dumps({**totals, "all": everything}, indent=1) + "\n")
        least = min(total["inputs"] for total in totals.values())
        if everything["inputs"] >= options.inputs and least >= options.each:
            break
    print(f"{'reader':22}" + "".join(f"{key:>12}" for key in COUNTED))
    for name, total in (*totals.items(), ("all", everything)):
        print(f"{name:22}" + "".join(f"{total[key]:>12,}" for key in COUNTED))
        for kind, text in total.get("kinds", {}).items():
            print(f"    {kind}  {text}")
    return 1 if any(everything[key] for key in WRONG) else 0


def _round(
    names: list[str], seconds: float, seed: int, jobs: int, keep: Path | None
) -> Iterator[dict[str, Any]]:
    """What each reader gave in its share of the time, each in a process of its own."""
    share = seconds * jobs / len(names)
    waiting, running = list(names), {}
    scratch = Path(tempfile.mkdtemp(prefix="insight-trace-mutate-", dir="/dev/shm"))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                reading, writing = os.pipe()
                pid = os.fork()
                if pid == 0:
                    os.close(reading)
                    try:
                        told = _work(name, share, seed, scratch / name, keep)
                    except BaseException:
                        told = {"reader": name, "foreign": 1, "kinds": {traceback.format_exc()[-300:]: ""}}
                    os.write(writing, json.dumps(told).encode())
                    os._exit(0)
                os.close(writing)
                running[pid] = (name, reading)
            pid, status = os.wait()
            name, reading = running.pop(pid)
            with os.fdopen(reading, "rb") as file:
                said = file.read()
            lost = {"reader": name, "foreign": 1, "kinds": {f"the process ended with {status}": ""}}
            yield json.loads(said) if said else lost
            shutil.rmtree(scratch / name, ignore_errors=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
