"""`torch.npu`: devices, streams, events and memory of the simulated chip."""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from torch_npu import _amp

_acl = ctypes.CDLL("libinsight_trace_runtime.so", mode=ctypes.RTLD_GLOBAL)
_device: Any = None  # set by _initialise
_acl.aclrtGetSocName.restype = ctypes.c_char_p
_acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
_acl.insight_trace_memory_used.restype = ctypes.c_uint64
_peak = 0
_pid = os.getpid()


def _initialise() -> None:
    global _device
    import torch_npu

    _device = ctypes.CDLL(str(torch_npu._PLACE / "lib" / "libtorch_npu.so"))
    _device.insight_trace_stream.restype = ctypes.c_void_p


class _Config:
    """Settings that programs make; the simulated device has nothing to set."""

    allow_internal_format = False

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value


config = _Config()
conv, matmul = _Config(), _Config()  # allow_hf32: products here are exact either way


def _checked(code: int, what: str) -> None:
    if code:
        said = (_acl.aclGetRecentErrMsg() or b"").decode(errors="replace")
        raise RuntimeError(f"{what}: ACL error {code}: {said}")


def is_available() -> bool:
    return True


def init() -> None: ...
def _lazy_init() -> None: ...
def is_initialized() -> bool:
    return True


def _is_in_bad_fork() -> bool:
    return os.getpid() != _pid


def device_count() -> int:
    return 8


def _index(device: Any) -> int:
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    found = torch.device(device).index
    return current_device() if found is None else found


def current_device() -> int:
    return int(_device.insight_trace_device())


def set_device(device: Any) -> None:
    index = _index(device)
    if not 0 <= index < device_count():
        raise RuntimeError(f"Invalid device id {index}: there are {device_count()}")
    _device.insight_trace_set_device(index)


def _exchange_device(index: int) -> int:
    before = current_device()
    if index >= 0:
        _device.insight_trace_set_device(index)
    return before


_maybe_exchange_device = _exchange_device


class device:  # noqa: N801
    """The current device for a while."""

    def __init__(self, device: Any) -> None:
        self.index = _index(device)

    def __enter__(self) -> None:
        self.before = _exchange_device(self.index)

    def __exit__(self, *_: object) -> None:
        _exchange_device(self.before)


class device_of(device):  # noqa: N801
    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device if tensor.device.type == "npu" else None)


def _info(attribute: int) -> int:
    value = ctypes.c_int64()
    _checked(_acl.aclrtGetDeviceInfo(0, attribute, ctypes.byref(value)), "aclrtGetDeviceInfo")
    return value.value


def get_device_properties(device: Any = None) -> SimpleNamespace:
    _index(device)
    return SimpleNamespace(
        name=get_device_name(), total_memory=_info(301), cube_core_num=_info(101), vector_core_num=_info(201),
        L2_cache_size=_info(302), multi_processor_count=_info(101), major=0, minor=0,
    )  # fmt: skip


def get_device_name(_device: Any = None) -> str:
    return _acl.aclrtGetSocName().decode()


def get_soc_version() -> int:
    return 260 if "950" in get_device_name() else 220


def get_device_capability(_device: Any = None) -> tuple[int, int]:
    return (0, 0)


def synchronize(device: Any = None) -> None:  # noqa: ARG001
    _checked(_acl.aclrtSynchronizeDevice(), "synchronize")


class Stream:
    """A stream with a simulated clock."""

    def __init__(
        self, device: Any = None, _priority: int = 0, *, handle: int | None = None, **_: Any
    ) -> None:
        self.device = torch.device("npu", _index(device))
        if handle is None:
            made = ctypes.c_void_p()
            _checked(_acl.aclrtCreateStream(ctypes.byref(made)), "aclrtCreateStream")
            handle = made.value or 0
        self.npu_stream = handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_stream)

    @property
    def stream_id(self) -> int:
        return self.npu_stream

    def synchronize(self) -> None:
        _checked(_acl.aclrtSynchronizeStream(self._as_parameter_), "synchronize")

    def query(self) -> bool:
        return True

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._before = _device.insight_trace_stream()
        _device.insight_trace_set_stream(self._as_parameter_)
        return self

    def __exit__(self, *_: object) -> None:
        _device.insight_trace_set_stream(ctypes.c_void_p(self._before))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.npu_stream == self.npu_stream

    def __hash__(self) -> int:
        return hash(self.npu_stream)


ExternalStream = Stream


def current_stream(device: Any = None) -> Stream:
    return Stream(device, handle=_device.insight_trace_stream() or 0)


def default_stream(device: Any = None) -> Stream:
    return Stream(device, handle=0)


def set_stream(stream: Stream) -> None:
    _device.insight_trace_set_stream(stream._as_parameter_)


class stream:  # noqa: N801
    """The current stream for a while."""

    def __init__(self, stream: Stream | None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream is not None:
            self._stream.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.__exit__()


class Event:
    """A point of a stream's simulated time."""

    def __init__(self, enable_timing: bool = False, _blocking: bool = False, **_: Any) -> None:
        self._event = ctypes.c_void_p()
        _checked(_acl.aclrtCreateEvent(ctypes.byref(self._event)), "aclrtCreateEvent")
        self._timing = enable_timing

    def record(self, stream: Stream | None = None) -> None:
        on = stream if stream is not None else current_stream()
        _checked(_acl.aclrtRecordEvent(self._event, on._as_parameter_), "record")

    def wait(self, stream: Stream | None = None) -> None:
        on = stream if stream is not None else current_stream()
        _checked(_acl.aclrtStreamWaitEvent(on._as_parameter_, self._event), "wait")

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        _checked(_acl.aclrtSynchronizeEvent(self._event), "synchronize")

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of simulated time up to `end`."""
        if not (self._timing and end._timing):
            raise RuntimeError("both events need enable_timing=True")
        value = ctypes.c_float()
        _checked(_acl.aclrtEventElapsedTime(ctypes.byref(value), self._event, end._event), "elapsed_time")
        return value.value

    def __del__(self) -> None:
        if getattr(self, "_event", None) is not None and _acl is not None:
            _acl.aclrtDestroyEvent(self._event)


def empty_cache() -> None: ...
def ipc_collect() -> None: ...
def reset_peak_memory_stats(_device: Any = None) -> None: ...
def reset_max_memory_allocated(_device: Any = None) -> None: ...


def memory_allocated(_device: Any = None) -> int:
    global _peak
    used = int(_acl.insight_trace_memory_used())
    _peak = max(_peak, used)
    return used


memory_reserved = memory_allocated


def max_memory_allocated(_device: Any = None) -> int:
    memory_allocated()
    return _peak


max_memory_reserved = max_memory_allocated


def mem_get_info(_device: Any = None) -> tuple[int, int]:
    total = _info(301)
    return total - memory_allocated(), total


def memory_stats(_device: Any = None) -> dict[str, int]:
    return {"allocated_bytes.all.current": memory_allocated()}


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed  # numbers of every device are drawn by the CPU's generator


def seed() -> None:
    torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return torch.initial_seed()


def get_rng_state(_device: Any = None) -> torch.Tensor:
    return torch.get_rng_state()


def set_rng_state(state: torch.Tensor, _device: Any = None) -> None:
    torch.set_rng_state(state.cpu())


def memory_summary(_device: Any = None, **_: Any) -> str:
    return f"{memory_allocated()} bytes are allocated on the simulated device, at most {max_memory_allocated()} were"


def memory_snapshot() -> list[Any]:
    return []


def get_amp_supported_dtype() -> list[torch.dtype]:
    return [torch.float16, torch.bfloat16, torch.float32]


def is_bf16_supported() -> bool:
    return True


def is_current_stream_capturing() -> bool:
    return False


def set_sync_debug_mode(_mode: int | str) -> None: ...
def get_sync_debug_mode() -> int:
    return 0


def set_compile_mode(**_: Any) -> None: ...
def set_option(_options: Any) -> None: ...
def set_op_timeout_ms(_ms: int) -> None: ...
def can_device_access_peer(_a: int, _b: int) -> bool:
    return False


class mstx:  # noqa: N801
    """Marks of the vendor's profiler, which is not there to see them."""

    @staticmethod
    def mark(_message: str, _stream: Stream | None = None, **_: Any) -> None: ...
    @staticmethod
    def range_start(_message: str, _stream: Stream | None = None, **_: Any) -> int:
        return 1

    @staticmethod
    def range_end(_number: int, **_: Any) -> None: ...


def _module(name: str, named: dict[str, Any]) -> ModuleType:
    """A part of `torch.npu` that programs import from by its own name."""
    made = ModuleType(f"torch_npu.npu.{name}")
    made.__dict__.update(named)
    for parent in ("torch_npu.npu", "torch.npu"):
        sys.modules[f"{parent}.{name}"] = made
    return made


def _named(*words: str) -> dict[str, Any]:
    return {name: value for name, value in globals().items() if any(word in name for word in words)}


memory = _module("memory", _named("memory", "cache", "mem_get_info"))
random = _module("random", _named("seed", "rng_state"))
streams = _module("streams", {"Stream": Stream, "Event": Event, "ExternalStream": ExternalStream})
utils = _module("utils", _named("device", "synchronize", "stream", "is_bf16_supported", "get_soc_version"))
amp = _module(
    "amp", {name: getattr(_amp, name) for name in ("autocast", "GradScaler", "custom_fwd", "custom_bwd")}
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"insight-trace's torch.npu has no '{name}'")
