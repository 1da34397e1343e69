"""Which software we stand on, and under which licences: a CycloneDX list, or a check of the licences.

python tools/sbom.py [-o sbom.json]     what is installed here of our run-time dependencies
python tools/sbom.py --check            fails where a licence is not among those we accept
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# Licences that let an Apache-2.0 project depend on a package at run time, as packages spell them.
ACCEPTED = re.compile(
    r"apache|bsd|\bmit\b|mit license|\bisc\b|\bpsf|python software foundation|\bmpl-2\.0|mozilla public license 2"
    r"|unlicense|public domain|zlib|0bsd|cc0",
    re.I,
)
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


def dependencies(name: str, extras: frozenset[str] = frozenset()) -> Iterator[Distribution]:
    """What `name` needs at run time, directly or not, each once and by name."""
    found: dict[str, Distribution] = {}
    wanted = [name]
    while wanted:
        asked = wanted.pop()
        key = re.sub(r"[-_.]+", "-", asked).lower()
        if key in found:
            continue
        try:
            found[key] = distribution(asked)
        except PackageNotFoundError:
            if asked == name:
                sys.exit(f"{name} is not installed here: run `make sbom`")
            continue  # for another system or Python
        for line in found[key].requires or []:
            requirement, _, marker = line.partition(";")
            optional = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
            named = _NAME.match(requirement.strip())
            if named and (optional is None or (asked == name and optional[1] in extras)):
                wanted.append(named[0])
    own = re.sub(r"[-_.]+", "-", name).lower()
    return iter([found[key] for key in sorted(found) if key != own])


def licence(package: Distribution) -> str:
    """What a package says of its licence: the expression, else the classifiers, else the first line of a text."""
    said = package.metadata
    expression = said.get("License-Expression")
    if expression:
        return expression
    classifiers = [
        text.rsplit(" :: ", 1)[-1] for text in said.get_all("Classifier") or [] if "License" in text
    ]
    if classifiers:
        return " AND ".join(classifiers)
    return ((said.get("License") or "").strip().splitlines() or ["unknown"])[0]


def cyclonedx(name: str) -> dict[str, object]:
    """The list in CycloneDX's form. No time and no random number: the same packages give the same bytes."""
    own = distribution(name)
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{package.metadata['Name'].lower()}@{package.version}",
            "name": package.metadata["Name"],
            "version": package.version,
            "licenses": [{"license": {"name": licence(package)}}],
            "purl": f"pkg:pypi/{package.metadata['Name'].lower()}@{package.version}",
        }
        for package in dependencies(name)
    ]
    itself = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{name}@{own.version}",
        "name": name,
        "version": own.version,
        "licenses": [{"license": {"id": "Apache-2.0"}}],
        "purl": f"pkg:pypi/{name}@{own.version}",
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": [
            {"ref": itself["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]}
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--check", action="store_true", help="only look at the licences")
    options = parser.parse_args()
    if options.check:
        packages = list(dependencies("insight-trace"))
        refused = [package for package in packages if not ACCEPTED.search(licence(package))]
        for package in refused:
            print(f"{package.metadata['Name']} {package.version}: {licence(package)}", file=sys.stderr)
        print(f"{len(packages)} packages, {len(refused)} with a licence that is not accepted")
        return 1 if refused else 0
    text = json.dumps(cyclonedx("insight-trace"), indent=1) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
