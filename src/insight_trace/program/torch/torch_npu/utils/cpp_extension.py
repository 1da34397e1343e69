"""Extensions that use the device's C++ names."""

from __future__ import annotations

import os
from typing import Any

import torch_npu


def include_paths() -> list[str]:
    from torch.utils.cpp_extension import include_paths as of_torch

    toolkit = os.environ["INSIGHT_TRACE_TOOLKIT"]
    return [*of_torch(), str(torch_npu._PLACE / "include"), f"{toolkit}/include"]


def NpuExtension(name: str, sources: list[str], *_: Any, **options: Any) -> Any:  # noqa: N802
    """A setuptools extension that finds our headers and libraries."""
    from torch.utils.cpp_extension import CppExtension

    toolkit = os.environ["INSIGHT_TRACE_TOOLKIT"]
    options["include_dirs"] = [*options.get("include_dirs", []), *include_paths()]
    options["library_dirs"] = [
        *options.get("library_dirs", []),
        str(torch_npu._PLACE / "lib"),
        f"{toolkit}/lib64",
    ]
    options["libraries"] = [*options.get("libraries", []), "torch_npu", "ascendcl"]
    return CppExtension(name, sources, **options)
