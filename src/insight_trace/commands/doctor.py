"""What this machine has, and what follows from it."""

from __future__ import annotations

import argparse
import json


def prepare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    import platform

    facts = {"python": platform.python_version(), "machine": platform.machine()}
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        for key, value in facts.items():
            print(f"{key:<10} {value}")
    return 0
