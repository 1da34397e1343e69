"""Gives every reader mutated inputs and counts what comes of it.

    python tools/mutate_readers.py [--seconds 60] [--reader NAME]... [--jobs 2] [--seed 0]

For each reader: inputs, those that were read, those refused with an error of ours, and what must be 0: other exceptions,
inputs that took more than 5 s of CPU or 1 GB of memory. The last are kept in a folder that is named.
`--atheris READER -- OPTIONS` lets atheris drive one reader by coverage instead, where it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_TOKENS = [
    b"null", b"true", b"-1", b"0", b"1e308", b"-1e308", b"NaN", b"Infinity", b"1e18", b"9" * 400, b"9" * 5000, b'""',
    b"[]", b"{}", b"[" * 2000, b'{"a":' * 2000, b"18446744073709551616", b"-9223372036854775809", b"\x00", b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r", b"\n", b"\t", b"0x", b"0xffffffffffffffffffff", b"%s", b"..", b"/dev/zero", b"\\u0000", b"\\ud800",
    b"1.5", b"1e-400", b'"\\n"', b"2147483648", b"4294967296", b",", b":", b"(", b")", b"<", b">",
]  # fmt: skip
COUNTED = ("inputs", "read", "refused", "wrong")
_LONGER = 0.05  # of the inputs come from a seed as long as a real file
_SLOW_SECONDS = 5.0
_MEMORY = 1 << 30


def mutated(seed: bytes, dice: random.Random) -> bytes:
    """One to a few changes of a seed: flips, cuts, repeats, tokens, numbers."""
    data = bytearray(seed)
    for _ in range(1 if dice.random() < 0.6 else dice.randint(2, 6)):
        data = data or bytearray(dice.choice(_TOKENS))
        at, kind = dice.randrange(len(data)), dice.randrange(8)
        size = dice.choice((1, 2, 8, 64))
        if kind == 0:
            data[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            data[at] = dice.randrange(256)
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = data[at : at + size] * dice.choice((1, 2, 50))
        elif kind == 4:
            data[at:at] = dice.choice(_TOKENS)
        elif kind == 5:
            del data[at:]
        elif kind == 6:  # a whole number or word is replaced
            end = at
            while end < len(data) and chr(data[end]).isalnum():
                end += 1
            data[at:end] = dice.choice(_TOKENS)
        else:
            data[at : at + 8] = dice.choice((0, 1, 2**31, 2**63, 2**64 - 1)).to_bytes(8, "little")
    return bytes(data)


class _TooSlow(BaseException):
    """An input took its five seconds."""


def one_reader(name: str, seconds: float, seed: int, kept: Path) -> Counter[str]:
    """What mutated inputs gave; the process is bounded from here on."""
    from tests.trust.reader_targets import TARGETS, place

    from insight_trace.errors import InsightTraceError

    def late(*_: object) -> None:
        raise _TooSlow

    target, dice, counts = TARGETS[name], random.Random(f"{name}-{seed}"), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="insight-trace-mutate-", dir="/dev/shm") as folder:
        path = place(Path(folder), target)
        for content in target.seeds:  # the seeds themselves are good
            path.write_bytes(content)
            target.read(path)
        used = _most_memory()
        resource.setrlimit(resource.RLIMIT_AS, (used + 3 * _MEMORY, used + 3 * _MEMORY))
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGVTALRM, late)
        first, *longer = target.seeds
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            content = mutated(dice.choice(longer) if longer and dice.random() < _LONGER else first, dice)
            path.write_bytes(content)
            counts["inputs"] += 1
            wrong = ""
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, _SLOW_SECONDS)
                target.read(path)
                counts["read"] += 1
            except InsightTraceError:
                counts["refused"] += 1
            except (_TooSlow, Exception):
                wrong = traceback.format_exc()
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if _most_memory() > used + _MEMORY:
                wrong, used = wrong or "it took more than 1 GB", _most_memory()
            if wrong:
                counts["wrong"] += 1
                (kept / f"{name}-{counts['inputs']}").write_bytes(content)
                print(f"{name}: {wrong}", file=sys.stderr)
    return counts


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _atheris(name: str, rest: list[str]) -> None:
    import atheris  # type: ignore[import-not-found]

    with atheris.instrument_imports(include=["insight_trace"]):  # all of NumPy would take minutes
        from tests.trust.reader_targets import TARGETS, place

        from insight_trace.errors import InsightTraceError
    target, folder = TARGETS[name], Path(tempfile.mkdtemp(prefix="insight-trace-fuzz-"))
    path, corpus = place(folder / "reader", target), folder / "corpus"
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
    parser.add_argument("--seconds", type=float, default=60.0, help="for all readers together (%(default)g)")
    parser.add_argument("--reader", action="append", default=[], help="only this one (repeatable)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", metavar="READER")
    parser.add_argument("rest", nargs="*", help="options of atheris, after --")
    options = parser.parse_args()
    if options.atheris:
        _atheris(options.atheris, options.rest)
        return 0
    from tests.trust.reader_targets import TARGETS

    names = options.reader or list(TARGETS)
    share = options.seconds * options.jobs / len(names)
    kept = Path(tempfile.mkdtemp(prefix="insight-trace-wrong-inputs-"))
    total: Counter[str] = Counter()
    print(f"{'reader':22}" + "".join(f"{key:>12}" for key in COUNTED))
    for begin in range(0, len(names), options.jobs):
        batch = names[begin : begin + options.jobs]
        # each may die alone
        pools = {name: ProcessPoolExecutor(1, multiprocessing.get_context("fork")) for name in batch}
        futures = {name: pools[name].submit(one_reader, name, share, options.seed, kept) for name in batch}
        for name, future in futures.items():
            try:
                counts = future.result()
            except BrokenProcessPool:
                counts = Counter(wrong=1)
            pools[name].shutdown()
            print(f"{name:22}" + "".join(f"{counts[key]:>12,}" for key in COUNTED), flush=True)
            total += counts
    print(f"{'all':22}" + "".join(f"{total[key]:>12,}" for key in COUNTED))
    if total["wrong"]:
        print(f"inputs that went wrong: {kept}")
        return 1
    kept.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
