"""A Dask cluster that answers: the connection, and workers of this version with a compiler."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import msgspec

from insight_trace import __version__
from insight_trace.errors import InputError, InsightTraceError, JobError, RequestError
from insight_trace.limits import cut

_CONNECT_SECONDS = 20
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ws|wss|ucx)://)?[\w.\-\[\]:]+:\d{1,5}|inproc://.+")


def connect(address: str) -> Any:
    if not _ADDRESS.fullmatch(address):
        raise RequestError(
            f"--cluster {cut(address)}: that is no address",
            hint="one looks like tcp://HOST:8786 or tls://HOST:8786",
        )
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise RequestError(
            "--cluster needs Dask's distributed, which is not installed",
            hint="pip install 'insight-trace[cluster]'",
        ) from None
    try:
        # what comes back is bytes: nothing that a worker sends is unpickled here
        return distributed.Client(
            address,
            timeout=_CONNECT_SECONDS,
            set_as_default=False,
            deserializers=["dask", "msgpack", "error"],
        )
    except (ValueError, TypeError) as error:
        raise RequestError(
            f"--cluster {address}: {error}", hint="an address looks like tcp://HOST:8786"
        ) from None
    except OSError as error:
        raise JobError(
            f"no Dask scheduler answers at {address}: {error}",
            hint="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from None


def introduced(client: Any, address: str, warn: Callable[[str], None]) -> tuple[int, str]:
    """Threads of all workers together, and their toolchain. Workers of another version are refused."""
    threads = client.nthreads()
    if not threads:
        raise JobError(f"the cluster at {address} has no workers", hint=f"dask worker {address}")
    try:
        answers = {worker: identity(said) for worker, said in client.run(worker_identity).items()}
    except InsightTraceError:
        raise
    except Exception as error:  # the package is missing there, or is too old to know the question
        raise JobError(
            f"the workers of {address} cannot run kernels: {type(error).__name__}: {error}",
            hint=f"install insight-trace {__version__} and a C++ compiler where they run",
        ) from None
    broken = next((reason for version, reason in answers.values() if not version), "")
    if broken:
        raise JobError(f"the workers of {address} cannot run kernels: {broken}")
    others = {version for version, _ in answers.values()} - {__version__}
    if others:
        raise JobError(
            f"workers of {address} have insight-trace {', '.join(sorted(others))}, here is {__version__}",
            hint="the same version is needed everywhere",
        )
    names = sorted({name for _, name in answers.values()})
    if len(names) > 1:
        warn(f"the workers of {address} have different compilers; kernels may differ in plain loads")
    return sum(threads.values()), " | ".join(names)


def worker_identity() -> bytes:
    """What a worker answers when it is asked who it is: its version, and its toolchain, as bytes."""
    from insight_trace.simulate.embedded.toolchain import Toolchain

    try:
        return msgspec.msgpack.encode((__version__, Toolchain.find().identity[:16]))
    except InsightTraceError as error:
        return msgspec.msgpack.encode(("", str(error)))


def identity(content: object) -> tuple[str, str]:
    """The answer to that, checked."""
    try:
        if not isinstance(content, bytes):
            raise TypeError(type(content).__name__)
        return msgspec.msgpack.decode(content, type=tuple[str, str])
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"a worker sent something else than its name: {cut(str(error))}") from None
