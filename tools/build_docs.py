"""Builds a searchable site from README and docs/, with a reference of commands and of the Python API made from the code.

    python tools/build_docs.py [-o FOLDER]

`make docs` installs MkDocs Material and calls it. The navigation is README's "Read on"; a page that stands in none of its
groups, a link that leads nowhere and a heading that a link names and no page has end the build.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import insight_trace
from insight_trace.__main__ import main as run_command
from insight_trace.commands import GROUPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+\.md)\)")


def navigation(readme: str) -> dict[str, list[tuple[str, str]]]:
    """The groups of README's "Read on": title and file of each page."""
    groups = {}
    for line in readme.partition("## Read on")[2].splitlines():
        title = re.match(r"\*\*(.+?)\*\*", line)
        if title:
            groups[title[1]] = _LINK.findall(line)
    return groups


def without_a_group(root: Path, groups: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Pages of docs/ that nobody finds."""
    listed = {file for pages in groups.values() for _, file in pages}
    there = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")}
    return sorted(there - listed)


def commands_page() -> str:
    """What `help COMMAND` prints, of every command."""
    lines = ["# Commands", ""]
    for group, commands in GROUPS.items():
        lines += [f"## {group.capitalize()}", ""]
        for name, text in commands.items():
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
                run_command([name, "--help"])
            lines += [
                f"### {name}",
                "",
                f"{text[0].upper()}{text[1:]}.",
                "",
                "```text",
                said.getvalue().rstrip(),
                "```",
                "",
            ]
    return "\n".join(lines)


def api_page() -> str:
    """Signature and first words of everything that `insight_trace` exports."""
    lines = ["# Python API", "", "Everything that `import insight_trace` offers.", ""]
    for name in sorted(insight_trace.__all__):
        if name.startswith("__"):
            continue
        found = getattr(insight_trace, name)
        if inspect.ismodule(found):  # a package that is called as the function it is named for
            found = found.__wrapped__
        if inspect.isclass(found):  # a type of results: its fields, as they are written
            fields = "".join(
                f"\n    {field}: {kind}" for field, kind in inspect.get_annotations(found).items()
            )
            signature = f"class {name}{':' if fields else ''}{fields}"
        else:
            signature = f"def {name}{inspect.signature(found)}"
        signature = signature.replace("insight_trace.", "")
        lines += [f"## {name}", "", "```python", signature, "```", "", inspect.getdoc(found) or "", ""]
    return "\n".join(lines)


def stage(folder: Path) -> dict[str, object]:
    """Copies the pages into `folder`, as they lie in the repository, and returns MkDocs' settings."""
    groups = navigation((ROOT / "README.md").read_text(encoding="utf-8"))
    lost = without_a_group(ROOT, groups)
    if not groups or lost:
        raise SystemExit(f'README\'s "Read on" has no link to: {", ".join(lost) or "anything"}')
    pages = folder / "pages"
    shutil.copytree(ROOT / "docs", pages / "docs")
    for name in PAGES:
        (pages / name).parent.mkdir(exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        # a folder of the repository is no page of the site
        text = re.sub(r"\[([^\]]+)\]\((?![^)]*[.:#])[^)]+\)", r"\1", text)
        (pages / name).write_text(text, encoding="utf-8")
    (pages / "reference").mkdir()
    (pages / "reference" / "commands.md").write_text(commands_page(), encoding="utf-8")
    (pages / "reference" / "api.md").write_text(api_page(), encoding="utf-8")
    nav: list[object] = [{"Insight Trace": "README.md"}]
    for group, listed in groups.items():
        nav.append({group: [{f"{title[0].upper()}{title[1:]}": file} for title, file in listed]})
    nav.append(
        {
            "Reference": [
                {"Commands": "reference/commands.md"},
                {"Python API": "reference/api.md"},
                {"Changes": "CHANGELOG.md"},
                {"Contributing": "CONTRIBUTING.md"},
            ]
        }
    )
    return {
        "site_name": "Insight Trace",
        "docs_dir": str(pages),
        "theme": {
            "name": "material",
            "font": False,  # nothing is loaded from elsewhere
            "features": ["navigation.tabs", "navigation.indexes", "toc.follow", "search.suggest"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "toc"],
        "validation": {"links": {"anchors": "warn", "not_found": "warn"}},
        "nav": nav,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "site", help="the site's folder (site/)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        settings = stage(folder)
        # JSON is YAML
        (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
        built = folder / "site"
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "mkdocs",
                "build",
                "--strict",
                "--quiet",
                "-f",
                str(folder / "mkdocs.yml"),
                "-d",
                str(built),
            ]
        )
        if done.returncode:
            return 1
        if (options.output / "search").is_dir():  # a site that was built before
            shutil.rmtree(options.output)
        shutil.copytree(built, options.output)
    print(f"built      {options.output}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
