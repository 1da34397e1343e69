"""Hook of the wheel's build: the demo's scene, the names that simpler's users type, and the compiled core that
tools/build_wheel.py names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelContent(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        names = "insight_trace_simpler_names.pth"
        build_data["force_include_editable"][str(Path(self.root) / "src" / names)] = names
        if version == "editable":  # finds the rest where it is
            return
        build_data["force_include"][str(Path(self.root) / "src" / names)] = names
        scene = Path(self.root) / "examples" / "paged_attention"
        build_data["force_include"][str(scene)] = "insight_trace/examples/paged_attention"
        named = os.environ.get("INSIGHT_TRACE_WHEEL_CORE")
        if not named:
            return
        files = sorted(Path(named).iterdir())
        for file in files:
            build_data["force_include"][str(file)] = f"insight_trace/simulate/embedded/carried/{file.name}"
        core = json.loads((Path(named) / "manifest.json").read_text(encoding="utf-8"))
        libc = core["glibc"].replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{libc}_{core['machine']}"
