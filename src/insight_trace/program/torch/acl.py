"""The vendor's Python functions of the host runtime (`import acl`), on the simulated chip of `insight-trace exec`.

A function gives back the error code, or what it made and the error code, as the vendor's does. Pointers are plain numbers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

if not os.environ.get("INSIGHT_TRACE_TOOLKIT"):
    raise ImportError(
        "this acl belongs to `insight-trace exec -- COMMAND`: run the program by that (docs/your-own-program.md)"
    )
_runtime = ctypes.CDLL("libinsight_trace_runtime.so", mode=ctypes.RTLD_GLOBAL)

_P, _N, _I, _U, _L = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64


def _call(
    symbol: str, takes: Sequence[Any], makes: Sequence[Any] = (), first: bool = True
) -> Callable[..., Any]:
    """A function of acl.h. `makes`: what it writes through pointers, which stand before what it takes, or behind."""
    function = getattr(_runtime, symbol)
    function.restype = ctypes.c_int

    def call(*values: Any) -> Any:
        if len(values) > len(takes):
            raise TypeError(f"{symbol} takes {len(takes)} values, not {len(values)}")
        given = [kind(_number(value)) for kind, value in zip(takes, values, strict=False)]
        given += [kind() for kind in takes[len(values) :]]
        made = [kind() for kind in makes]
        places = [ctypes.byref(one) for one in made]
        code = function(*places, *given) if first else function(*given, *places)
        return (*((one.value or 0) for one in made), code) if made else code

    call.__name__ = call.__qualname__ = symbol
    return call


def _number(value: Any) -> Any:
    """A pointer of ctypes or of torch's stream is its number, nothing is 0."""
    value = getattr(value, "value", getattr(value, "npu_stream", value))
    return 0 if value is None else value


def init(_config: str | None = None) -> int:
    return int(_runtime.aclInit(None))


def finalize() -> int:
    return int(_runtime.aclFinalize())


def get_soc_name() -> str:
    _runtime.aclrtGetSocName.restype = ctypes.c_char_p
    return _runtime.aclrtGetSocName().decode()


def get_recent_err_msg() -> str:
    _runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return (_runtime.aclGetRecentErrMsg() or b"").decode(errors="replace")


def data_type_size(kind: int) -> int:
    _runtime.aclDataTypeSize.restype = ctypes.c_size_t
    return int(_runtime.aclDataTypeSize(kind))


def _mem_info(attribute: int) -> tuple[int, int, int]:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    code = _runtime.aclrtGetMemInfo(attribute, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value, code


def _stream_with_config(priority: int, flag: int) -> tuple[int, int]:
    made = ctypes.c_void_p()
    code = _runtime.aclrtCreateStreamWithConfig(ctypes.byref(made), _U(priority), _U(flag))
    return made.value or 0, code


def _load(path: str, _options: Any = None) -> tuple[int, int]:
    made = ctypes.c_void_p()
    code = _runtime.aclrtBinaryLoadFromFile(os.fsencode(path), None, ctypes.byref(made))
    return made.value or 0, code


def _kernel(file: int, name: str) -> tuple[int, int]:
    made = ctypes.c_void_p()
    code = _runtime.aclrtBinaryGetFunction(_P(file), name.encode(), ctypes.byref(made))
    return made.value or 0, code


_COPY = (_P, _N, _P, _N, _I)
_COPY_ROWS = (_P, _N, _P, _N, _N, _N, _I)


class _Part(SimpleNamespace):
    """`acl.rt` or `acl.util`: what is not there says so."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"insight-trace's acl.{self.__dict__['called']} has no '{name}'")


rt = _Part(
    called="rt",
    set_device=_call("aclrtSetDevice", (_I,)),
    reset_device=_call("aclrtResetDevice", (_I,)),
    get_device=_call("aclrtGetDevice", (), (_I,)),
    get_device_count=_call("aclrtGetDeviceCount", (), (_U,)),
    get_run_mode=_call("aclrtGetRunMode", (), (_I,)),
    get_soc_name=get_soc_name,
    synchronize_device=_call("aclrtSynchronizeDevice", ()),
    get_mem_info=_mem_info,
    create_context=_call("aclrtCreateContext", (_I,), (_P,)),
    destroy_context=_call("aclrtDestroyContext", (_P,)),
    set_context=_call("aclrtSetCurrentContext", (_P,)),
    get_context=_call("aclrtGetCurrentContext", (), (_P,)),
    malloc=_call("aclrtMalloc", (_N, _I), (_P,)),
    malloc_cached=_call("aclrtMallocCached", (_N, _I), (_P,)),
    free=_call("aclrtFree", (_P,)),
    malloc_host=_call("aclrtMallocHost", (_N,), (_P,)),
    free_host=_call("aclrtFreeHost", (_P,)),
    memset=_call("aclrtMemset", (_P, _N, _I, _N)),
    memset_async=_call("aclrtMemsetAsync", (_P, _N, _I, _N, _P)),
    memcpy=_call("aclrtMemcpy", _COPY),
    memcpy_async=_call("aclrtMemcpyAsync", (*_COPY, _P)),
    memcpy_2d=_call("aclrtMemcpy2d", _COPY_ROWS),
    memcpy_2d_async=_call("aclrtMemcpy2dAsync", (*_COPY_ROWS, _P)),
    create_stream=_call("aclrtCreateStream", (), (_P,)),
    create_stream_with_config=_stream_with_config,
    destroy_stream=_call("aclrtDestroyStream", (_P,)),
    synchronize_stream=_call("aclrtSynchronizeStream", (_P,)),
    synchronize_stream_with_timeout=_call("aclrtSynchronizeStreamWithTimeout", (_P, _I)),
    stream_query=_call("aclrtStreamQuery", (_P,), (_I,), first=False),
    create_event=_call("aclrtCreateEvent", (), (_P,)),
    create_event_with_flag=_call("aclrtCreateEventWithFlag", (_U,), (_P,)),
    destroy_event=_call("aclrtDestroyEvent", (_P,)),
    record_event=_call("aclrtRecordEvent", (_P, _P)),
    reset_event=_call("aclrtResetEvent", (_P, _P)),
    query_event_status=_call("aclrtQueryEventStatus", (_P,), (_I,), first=False),
    synchronize_event=_call("aclrtSynchronizeEvent", (_P,)),
    event_elapsed_time=_call("aclrtEventElapsedTime", (_P, _P), (ctypes.c_float,)),
    stream_wait_event=_call("aclrtStreamWaitEvent", (_P, _P)),
    binary_load_from_file=_load,
    binary_get_function=_kernel,
    binary_unload=_call("aclrtBinaryUnLoad", (_P,)),
    launch_kernel=_call("aclrtLaunchKernel", (_P, _U, _P, _N, _P)),
)


def _numpy_to_ptr(array: Any) -> int:
    return int(array.ctypes.data)


# element types by NumPy's numbers
_NUMBERED = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "int64", "uint64", "float32", "float64"
)  # fmt: skip


def _ptr_to_numpy(pointer: int, shape: Sequence[int], kind: int) -> Any:
    """The memory at an address as an array."""
    import numpy as np

    dtype = np.dtype("float16" if kind == 23 else _NUMBERED[kind])
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer), dtype).reshape(shape)


def _bytes_to_ptr(data: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


util = _Part(
    called="util",
    numpy_to_ptr=_numpy_to_ptr,
    numpy_contiguous_to_ptr=_numpy_to_ptr,
    ptr_to_numpy=_ptr_to_numpy,
    bytes_to_ptr=_bytes_to_ptr,
    ptr_to_bytes=lambda pointer, size: ctypes.string_at(pointer, size),
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"insight-trace's acl has no '{name}': memory, streams, events and kernels of acl.rt and acl.util are there, "
        "the vendor's operators and models are not"
    )
