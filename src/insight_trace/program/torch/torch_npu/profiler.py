"""The vendor's profiler, by name: `insight-trace exec` prints and traces launches itself."""

from __future__ import annotations

from typing import Any


class _Named(type):
    def __getattr__(cls, name: str) -> Any:  # ProfilerActivity.NPU
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


class _Nothing(metaclass=_Named):
    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None: ...
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Nothing() if name[0].islower() else _Nothing


profile = _Nothing
