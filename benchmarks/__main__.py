"""Runs every benchmark of this folder, or those that are named: python -m benchmarks [NAME]..., NAME [OPTION]..."""

import importlib
import sys
import traceback
from pathlib import Path

_WRITES_A_PAGE = ("accuracy",)


def _runs_by_itself(path: Path) -> bool:
    """A program that needs no checkout; what needs one, or writes documentation, is started by itself."""
    text = path.read_text(encoding="utf-8")
    return "def main(" in text and "required=True" not in text and path.stem not in _WRITES_A_PAGE


def main(words: list[str]) -> int:
    here = Path(__file__).parent
    # options are those of the one benchmark that is named
    names, options = (words[:1], words[1:]) if words[1:2] and words[1].startswith("-") else (words, [])
    known = sorted(
        path.stem for path in here.glob("*.py") if path.stem != "__main__" and _runs_by_itself(path)
    )
    unknown = sorted(set(names) - set(known))
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = []
    for name in names or known:
        print(f"--- {name}", flush=True)
        sys.argv = [name, *options]
        try:
            importlib.import_module(f"benchmarks.{name}").main()
        except Exception:  # one that fails must not hide the others
            traceback.print_exc()
            failed.append(name)
        except SystemExit as end:
            if end.code:
                failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
