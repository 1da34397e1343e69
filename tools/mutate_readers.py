"""Gives every reader mutated inputs and counts what comes of it.

    python tools/mutate_readers.py --seconds 60 [--reader NAME]... [--jobs 2] [--seed 0] [--keep DIR]

For each reader: inputs, those that were read, those refused with an error of ours, and what must be 0: other
exceptions, inputs that took more than 5 s of CPU or 1 GB of memory. Inputs of the last three are kept in DIR.
`--atheris` lets atheris drive one reader instead, where it is installed.
"""

from __future__ import annotations

import argparse
import collections
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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_TOKENS = [
    b"null", b"true", b"-1", b"0", b"1e308", b"-1e308", b"NaN", b"Infinity", b"1e18", b"9" * 400, b"9" * 5000, b'""',
    b"[]", b"{}", b"[" * 2000, b'{"a":' * 2000, b"18446744073709551616", b"-9223372036854775809", b"\x00", b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r", b"\n", b"\t", b"0x", b"0xffffffffffffffffffff", b"%s", b"..", b"/dev/zero", b"\\u0000", b"\\ud800",
    b"1.5", b"1e-400", b'"\\n"', b"2147483648", b"4294967296", b",", b":", b"(", b")", b"<", b">",
]  # fmt: skip
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
    counts: collections.Counter[str] = collections.Counter()
    kinds: dict[str, str] = {}
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * _MEMORY, used + 3 * _MEMORY))

    def late(*_: object) -> None:
        raise _TooSlow

    signal.signal(signal.SIGVTALRM, late)
    end = time.monotonic() + seconds
    for given in target.seeds:  # the seeds themselves are good
        path.write_bytes(given)
        target.read(path)
    while time.monotonic() < end:
        content = mutated(dice.choice(target.seeds), dice)
        path.write_bytes(content)
        counts["inputs"] += 1
        wrong = ""
        signal.setitimer(signal.ITIMER_VIRTUAL, _SLOW_SECONDS)
        try:
            target.read(path)
            counts["read"] += 1
        except InsightTraceError:
            counts["refused"] += 1
        except _TooSlow:
            counts["slow"] += 1
            wrong = f"slow {traceback.format_exc().splitlines()[-3].strip()}"
        except (Exception, MemoryError) as error:
            counts["foreign"] += 1
            frame = traceback.extract_tb(error.__traceback__)
            ours = [f for f in frame if "insight_trace" in f.filename] or frame
            wrong = f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}: {str(error)[:120]}"
            wrong = wrong.split(": ")[0] + " " + type(error).__name__
            kinds.setdefault(wrong, str(error)[:200])
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if now > used + _MEMORY:
            counts["large"] += 1
            wrong = wrong or "large"
            used = now
        if wrong and (wrong not in kinds or counts[f"kept {wrong}"] == 0):
            kinds.setdefault(wrong, "")
            counts[f"kept {wrong}"] = 1
            if keep is not None:
                label = "".join(c if c.isalnum() else "_" for c in wrong)[:80]
                (keep / f"{name}-{label}").write_bytes(content)
    return {"reader": name, **{k: v for k, v in counts.items() if not k.startswith("kept")}, "kinds": kinds}


def _atheris(name: str, rest: list[str]) -> None:
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports():
        from tests.trust.reader_targets import TARGETS, place

        from insight_trace.errors import InsightTraceError
    target = TARGETS[name]
    path = place(Path(tempfile.mkdtemp(prefix="insight-trace-fuzz-")), target)

    def one(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(InsightTraceError):
            target.read(path)

    atheris.Setup([sys.argv[0], *rest], one)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for all readers together (default 60)")
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
    share = options.seconds * options.jobs / len(names)
    waiting, running, results = list(names), {}, []
    scratch = Path(tempfile.mkdtemp(prefix="insight-trace-mutate-", dir="/dev/shm"))
    try:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                name = waiting.pop(0)
                reading, writing = os.pipe()
                pid = os.fork()
                if pid == 0:
                    os.close(reading)
                    try:
                        told = _work(name, share, options.seed, scratch / name, options.keep)
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
            results.append(json.loads(said) if said else lost)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    results.sort(key=lambda r: names.index(r["reader"]))
    print(f"{'reader':18}{'inputs':>12}{'read':>12}{'refused':>12}{'foreign':>9}{'slow':>6}{'large':>7}")
    total: collections.Counter[str] = collections.Counter()
    for result in results:
        figures = [result.get(k, 0) for k in ("inputs", "read", "refused", "foreign", "slow", "large")]
        total.update(
            dict(zip(("inputs", "read", "refused", "foreign", "slow", "large"), figures, strict=True))
        )
        print("{:18}{:>12,}{:>12,}{:>12,}{:>9}{:>6}{:>7}".format(result["reader"], *figures))
        for kind, text in result["kinds"].items():
            print(f"    {kind}  {text}")
    print("{:18}{:>12,}{:>12,}{:>12,}{:>9}{:>6}{:>7}".format("all", *(total[k] for k in (
        "inputs", "read", "refused", "foreign", "slow", "large"))))  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 1 if total["foreign"] or total["slow"] or total["large"] else 0


if __name__ == "__main__":
    sys.exit(main())
