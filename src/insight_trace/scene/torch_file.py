"""Tensors in `.pt` files, read without torch and without running anything that the file says.

A `.pt` file is a zip archive: `<name>/data.pkl` describes the tensor, `<name>/data/<key>` holds its bytes. The
description is a pickle; here only the names that a plain tensor needs mean something, all others are refused.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from insight_trace.errors import InputError
from insight_trace.limits import DESCRIPTION_BYTES
from insight_trace.reading import open_regular

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_DIMENSIONS = 64
_MOST_KEPT = 1 << 16
_STORAGES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "UntypedStorage": "uint8",
}
_DTYPES = frozenset({*_STORAGES.values(), "uint16", "uint32", "uint64"})
_DTYPES |= {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}


class _Refused(Exception):  # noqa: N818 - becomes an InputError with the file's name
    pass


@dataclass(frozen=True)
class _Storage:
    dtype: str
    key: str
    count: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


def read_torch_file(path: Path) -> NDArray[Any]:
    """The tensor of a `.pt` file as an array of its own. InputError says why a file holds none."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _read(archive)
    except _Refused as error:
        raise InputError(str(error), where=str(path)) from None
    except zipfile.BadZipFile:
        raise InputError(
            "is not a .pt file as torch writes them today",
            where=str(path),
            hint="save the tensor again with torch.save, or as .npy",
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (
        pickle.UnpicklingError,
        EOFError,
        KeyError,
        ValueError,
        TypeError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
        MemoryError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise InputError(f"is damaged: {type(error).__name__}: {error}", where=str(path)) from None


def _read(archive: zipfile.ZipFile) -> NDArray[Any]:
    entries = {info.filename: info for info in archive.infolist()}
    described = [name for name in entries if name == "data.pkl" or name.endswith("/data.pkl")]
    if len(described) != 1:
        raise _Refused("holds no tensor: there is no data.pkl in it")
    prefix = described[0].removesuffix("data.pkl")
    if entries[described[0]].file_size > DESCRIPTION_BYTES:
        raise _Refused("describes more than one tensor")
    description = _bytes(archive, entries[described[0]])
    _check_places(description)
    found = _Reader(io.BytesIO(description)).load()
    if not isinstance(found, _Tensor):
        raise _Refused(f"holds a {type(found).__name__}, not one tensor")
    order = entries.get(f"{prefix}byteorder")
    if order is not None and _bytes(archive, order) != b"little":
        raise _Refused("was written on a big-endian machine")
    place = entries.get(f"{prefix}data/{found.storage.key}")
    if place is None:
        raise _Refused(f"lacks the bytes of its tensor (data/{found.storage.key})")
    return _array(found, _bytes(archive, place))


def _bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # torch never compresses; a small file that unpacks to gigabytes is not one of its own
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        raise _Refused("is compressed or encrypted, which torch never does")
    return archive.read(info)


def _check_places(description: bytes) -> None:
    """A pickle numbers what it keeps, and its reader makes room up to the largest number that is named."""
    for opcode, given, _ in pickletools.genops(description):
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and (given or 0) > _MOST_KEPT:
            raise _Refused(f"describes more than one tensor: it keeps a value under number {given}")


def _array(tensor: _Tensor, raw: bytes) -> NDArray[Any]:
    import ml_dtypes
    import numpy as np

    kind = np.dtype(getattr(ml_dtypes, tensor.dtype, tensor.dtype))
    carrier = np.dtype(f"u{kind.itemsize}")  # NumPy's views know only its own types
    whole = np.frombuffer(raw[: len(raw) // kind.itemsize * kind.itemsize], carrier)
    if 0 in tensor.shape:
        return np.zeros(tensor.shape, kind)
    last = tensor.offset + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True))
    if last >= len(whole):
        raise _Refused(f"is damaged: its tensor ends at element {last + 1} of {len(whole)}")
    if math.prod(tensor.shape) > len(whole):
        raise _Refused("repeats its elements: save a contiguous copy of the tensor")
    view = np.lib.stride_tricks.as_strided(
        whole[tensor.offset :], tensor.shape, [s * kind.itemsize for s in tensor.strides], writeable=False
    )
    return np.array(view, order="C").view(kind)


class _Reader(pickle.Unpickler):
    """Knows a tensor, its storage and its element type. Nothing else can be named, so nothing can be run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_tensor_v3"):
            return _tensor_of_type
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        if (module, name) == ("collections", "OrderedDict"):
            return _no_hooks
        if module in ("torch", "torch.storage") and name in _STORAGES:
            return _StorageKind(_STORAGES[name])
        if module == "torch" and name in _DTYPES:
            return _ElementType(name)
        _refuse(f"names {module}.{name}, which a tensor does not need")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage":
            _refuse("describes no storage where one is needed")
        _, kind, key, _location, count = pid
        if not isinstance(kind, _StorageKind) or not isinstance(key, str) or not _is_count(count):
            _refuse("describes its storage in an unknown way")
        return _Storage(kind.dtype, key, count)


@dataclass(frozen=True)
class _StorageKind:
    dtype: str


@dataclass(frozen=True)
class _ElementType:
    name: str


def _refuse(why: str) -> NoReturn:
    raise _Refused(why)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48


def _no_hooks(*given: Any) -> collections.OrderedDict[str, str]:
    if given and given != ([],):
        _refuse("holds more than a plain tensor")
    return collections.OrderedDict()


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage) or not _is_count(offset):
        _refuse("describes its tensor in an unknown way")
    if not isinstance(shape, tuple) or not isinstance(strides, tuple) or len(shape) != len(strides):
        _refuse("describes its tensor's shape in an unknown way")
    if len(shape) > _MOST_DIMENSIONS or not all(map(_is_count, (*shape, *strides))):
        _refuse("describes a shape that no tensor has")
    return _Tensor(storage, offset, shape, strides, storage.dtype)


def _tensor_of_type(
    storage: Any, offset: Any, shape: Any, strides: Any, _grad: Any, _hooks: Any, dtype: Any, *_: Any
) -> _Tensor:
    plain = _tensor(storage, offset, shape, strides)
    if not isinstance(dtype, _ElementType):
        _refuse("gives its tensor an unknown element type")
    return _Tensor(plain.storage, plain.offset, plain.shape, plain.strides, dtype.name)


def _parameter(data: Any, *_: Any) -> _Tensor:
    if not isinstance(data, _Tensor):
        _refuse("holds a parameter that is no tensor")
    return data
