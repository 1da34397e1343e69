"""Orchestrations written in Python: `def orchestrate(rt, args)` with the verbs of the C++ ones.

    def orchestrate(rt, args):
        with rt.scope():
            total = rt.submit_aiv_task(ADD, rt.args().add_input(args.a, args.b).add_output(rt.create((64, 64))))
            rt.submit_aiv_task(SCALE, rt.args().add_input(total[0]).add_output(args.out).add_scalar(2.0))

The function runs in the process that captures; every call is carried out by the runner, which answers it.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from insight_trace.capture.arena import Arena, row_major
from insight_trace.dtypes import DType, dtype_named, scalar_value
from insight_trace.errors import RequestError
from insight_trace.scene.live import LiveScalar, scalar_slot
from insight_trace.simulate.embedded.memory import escape

_INPUT, _OUTPUT, _INOUT, _EXISTING, _NO_DEP = range(5)  # TensorArgType
_KERNELS, _ALLOCATE, _DUMMY = range(3)  # CallKind
_LAST_WORDS_SECONDS = 0.5  # for an orchestration to see that its runner is gone


@dataclass(frozen=True, slots=True)
class Tensor:
    """A view of global memory."""

    address: int
    size: int  # bytes of the buffer
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    start_offset: int = 0

    def view(self, shape: Sequence[int], offsets: Sequence[int]) -> Tensor:
        if len(shape) != len(self.shape) or len(offsets) != len(self.shape):
            raise ValueError(f"a view of a tensor with {len(self.shape)} dimensions needs as many")
        for d, (size, first, whole) in enumerate(zip(shape, offsets, self.shape, strict=True)):
            if first + size > whole:
                raise ValueError(f"a view of {size} from {first} leaves dimension {d} of {whole}")
        start = sum(o * s for o, s in zip(offsets, self.strides, strict=True))
        return replace(self, shape=tuple(shape), start_offset=self.start_offset + start)

    def reshape(self, shape: Sequence[int]) -> Tensor:
        if self.strides != row_major(self.shape):
            raise ValueError("a strided view cannot be reshaped")
        return replace(self, shape=tuple(shape), strides=row_major(shape))

    @property
    def fields(self) -> list[object]:
        shape = [len(self.shape), *self.shape, *self.strides]
        return [self.address, self.size, self.start_offset, self.dtype.code, *shape]


@dataclass(frozen=True, slots=True)
class Created:
    """A tensor that the runtime is to allocate."""

    shape: tuple[int, ...]
    dtype: DType
    initial: int | None = None  # bits of every element

    @property
    def fields(self) -> list[object]:
        given = self.initial is not None
        return [self.dtype.code, len(self.shape), *self.shape, int(given), self.initial or 0]

    def at(self, address: int) -> Tensor:
        size = self.dtype.size
        for extent in self.shape:
            size *= extent
        return Tensor(address, size, self.dtype, self.shape, row_major(self.shape))


class TaskArgs:
    """Arguments of one task: tensors first, then scalars. Every verb returns the same object."""

    def __init__(self) -> None:
        self.tensors: list[tuple[int, Tensor | Created]] = []
        self.scalars: list[tuple[int, int]] = []
        self.dependencies: list[int] = []
        self.marked = 0
        self.block_count = 1
        self.sync_start = False
        self.early = False

    def add_input(self, *tensors: Tensor) -> TaskArgs:
        return self._add(_INPUT, tensors)

    def add_inout(self, *tensors: Tensor) -> TaskArgs:
        return self._add(_INOUT, tensors)

    def add_no_dep(self, *tensors: Tensor) -> TaskArgs:
        return self._add(_NO_DEP, tensors)

    def add_output(self, *tensors: Tensor | Created) -> TaskArgs:
        for tensor in tensors:
            self._add(_OUTPUT if isinstance(tensor, Created) else _EXISTING, (tensor,))
        return self

    def add_scalar(self, *values: Any) -> TaskArgs:
        for value in values:
            dtype, bits = scalar_slot(value)
            self.scalars.append((bits, dtype.code))
        return self

    def set_dependencies(self, *tasks: Submitted) -> TaskArgs:
        self.dependencies += [task.task_id for task in tasks]
        return self

    def set_block_num(self, count: int, *, sync_start: bool = False) -> TaskArgs:
        self.block_count, self.sync_start = count, sync_start
        return self

    def set_allow_early_resolve(self, early: bool = True) -> TaskArgs:
        self.early = early
        return self

    def dump(self, *slots: int) -> TaskArgs:
        """Marks arguments by their slot, or all that were added so far."""
        for slot in slots or range(len(self.tensors) + len(self.scalars)):
            self.marked |= 1 << slot
        return self

    def _add(self, tag: int, tensors: Sequence[Tensor | Created]) -> TaskArgs:
        if self.scalars:
            raise ValueError("a tensor was added after a scalar: all tensors come first")
        for tensor in tensors:
            if not isinstance(tensor, Tensor | Created):
                raise TypeError(f"a {type(tensor).__name__} is no tensor")
            self.tensors.append((tag, tensor))
        return self


@dataclass(frozen=True, slots=True)
class Submitted(Sequence[Tensor]):
    """A task that was handed in; indexing gives the tensors that were made for it."""

    task_id: int
    outputs: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, index: Any) -> Any:
        return self.outputs[index]


class Runtime:
    """What `orchestrate` gets as `rt`."""

    def __init__(self, channel: socket.socket) -> None:
        self._stream = channel.makefile("rw", encoding="utf-8", newline="\n")

    def args(self) -> TaskArgs:
        return TaskArgs()

    def create(self, shape: Sequence[int], dtype: str = "FLOAT32", *, initial: Any = None) -> Created:
        found = dtype_named(dtype)
        if found is None:
            raise ValueError(f"there is no element type {dtype}")
        bits = None if initial is None else int.from_bytes(found.numpy.type(initial).tobytes(), "little")
        return Created(tuple(shape), found, bits)

    def submit_aic_task(self, kernel: int, args: TaskArgs) -> Submitted:
        return self._submit(_KERNELS, (kernel, -1, -1), args)

    def submit_aiv_task(self, kernel: int, args: TaskArgs) -> Submitted:
        return self._submit(_KERNELS, (-1, kernel, -1), args)

    def submit_task(
        self, args: TaskArgs, *, aic: int | None = None, aiv0: int | None = None, aiv1: int | None = None
    ) -> Submitted:
        kernels = tuple(-1 if kernel is None else kernel for kernel in (aic, aiv0, aiv1))
        return self._submit(_KERNELS, kernels, args)

    def submit_dummy_task(self, args: TaskArgs) -> Submitted:
        return self._submit(_DUMMY, (-1, -1, -1), args)

    def alloc_tensors(self, *created: Created) -> Submitted:
        return self._submit(_ALLOCATE, (-1, -1, -1), TaskArgs().add_output(*created))

    def get_tensor_data(self, tensor: Tensor, *index: int) -> int | float | bool:
        answer = self._ask("get", *tensor.fields, len(index), *index)
        return scalar_value(tensor.dtype, int(answer[0]))

    def set_tensor_data(self, tensor: Tensor, *index: int, value: Any) -> None:
        bits = int.from_bytes(tensor.dtype.numpy.type(value).tobytes(), "little")
        self._ask("set", *tensor.fields, len(index), *index, bits)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        self._ask("scope", 1)
        yield
        self._ask("scope", 0)

    def _submit(self, kind: int, kernels: tuple[int, ...], args: TaskArgs) -> Submitted:
        flags = (int(args.sync_start), int(args.early))
        fields: list[object] = [kind, *kernels, args.block_count, *flags, args.marked]
        fields.append(len(args.tensors))
        for tag, tensor in args.tensors:
            fields += [tag, *tensor.fields]
        fields.append(len(args.scalars))
        fields += [part for scalar in args.scalars for part in scalar]
        fields += [len(args.dependencies), *args.dependencies]
        task_id, *addresses = self._ask("submit", *fields)
        created = [tensor for _, tensor in args.tensors if isinstance(tensor, Created)]
        made = (c.at(int(address)) for c, address in zip(created, addresses, strict=True))
        return Submitted(int(task_id), tuple(made))

    def _ask(self, verb: str, *fields: object) -> list[str]:
        self._say(verb, *_caller(), *fields)
        answer = self._stream.readline()
        if not answer:
            raise _RunnerGoneError
        return answer.rstrip("\n").split("\t")

    def _say(self, *fields: object) -> None:
        self._stream.write("\t".join(map(str, fields)) + "\n")
        self._stream.flush()


class _RunnerGoneError(Exception):
    """The runner ended the run; its own report says why."""


class _Ended(BaseException):
    """Raised in an orchestration that goes on without its runner."""


class Arguments:
    """What `orchestrate` gets as `args`: the scene's tensors and scalars by name."""

    def __init__(self, named: dict[str, Any]) -> None:
        self.__dict__.update(named)


@contextlib.contextmanager
def orchestrating(
    function: Callable[[Runtime, Any], None],
    arena: Arena,
    scalars: Sequence[LiveScalar],
    channel: socket.socket,
) -> Iterator[None]:
    """While it lasts, the orchestration runs in a thread, and tells the runner how it ended."""
    named: dict[str, Any] = {
        tensor.name: Tensor(
            address, tensor.array.nbytes, tensor.dtype, tensor.array.shape, row_major(tensor.array.shape)
        )
        for tensor, address in arena.placed()
    }
    named |= {scalar.name: scalar_value(scalar.dtype, scalar.bits) for scalar in scalars}

    def drive() -> None:
        runtime = Runtime(channel)
        with contextlib.suppress(_RunnerGoneError, _Ended, OSError):
            try:
                function(runtime, Arguments(named))
            except _RunnerGoneError:
                raise
            except Exception as error:
                trace, place = error.__traceback__, ("", 0)
                while trace is not None:
                    if trace.tb_frame.f_code.co_filename != __file__:
                        place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
                    trace = trace.tb_next
                text = escape(f"the orchestration failed: {type(error).__name__}: {error}")
                runtime._say("fail", *place, text)
            else:
                runtime._say("done")

    thread = threading.Thread(target=drive, name="orchestration", daemon=True)
    thread.start()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            channel.shutdown(socket.SHUT_RDWR)
        thread.join(_LAST_WORDS_SECONDS)
        if thread.ident is not None and thread.is_alive():
            # it takes the end of its runner for nothing. What waits outside of Python is left behind: it must not keep us
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(_Ended))
            thread.join(_LAST_WORDS_SECONDS)


def python_function(scene_class: Any, name: str) -> Callable[[Runtime, Any], None]:
    """The function of that name in the module that declares the scene."""
    found = getattr(sys.modules.get(scene_class.__module__), name, None)
    if not callable(found):
        raise RequestError(f"the scene's module has no function {name}(rt, args)")
    function: Callable[[Runtime, Any], None] = found
    return function


def _caller() -> tuple[str, int]:
    """File and line of the orchestration, outside this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
