"""Checks (or with --fix applies) clang-format on every C++ file that git knows."""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = ("*.cpp", "*.hpp", "*.h")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fix", action="store_true", help="rewrite the files in place")
    options = parser.parse_args()
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *PATTERNS],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    files = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    files = [name for name in files if not name.startswith("tests/data/")]
    if not files:
        return 0
    clang_format = Path(sys.executable).parent / "clang-format"
    mode = ["-i"] if options.fix else ["--dry-run", "-Werror"]
    return subprocess.run([str(clang_format), *mode, *files], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
