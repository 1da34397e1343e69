"""The bytes of a kernel's buffers before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from insight_trace.errors import InputError
from insight_trace.limits import BUFFER_BYTES
from insight_trace.ptoas.planned_kernel import BufferArg, Content
from insight_trace.reading import load_npy, readable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def content_pieces(argument: BufferArg, seed: int) -> Iterator[NDArray[Any]]:
    """The content piece by piece, as raw arrays; the same seed gives the same bytes."""
    if argument.content is Content.FILE:
        assert argument.file is not None
        yield _from_file(argument, argument.file)
        return
    if argument.content is not Content.ZERO and argument.nbytes > BUFFER_BYTES:
        raise InputError(
            f"{argument.label} has {argument.nbytes} bytes; content is made up to {BUFFER_BYTES}",
            hint="choose a smaller --dynamic-dim, or set the scalars that decide its size with --scalar",
        )
    from insight_trace.ptoas import made_up_content

    yield from made_up_content.pieces(
        argument.dtype.numpy_name,
        argument.elements,
        argument.content.value,
        argument.low,
        argument.high,
        seed,
        argument.position,
        argument.positive,
    )


def content_of(argument: BufferArg, seed: int) -> NDArray[Any]:
    """The whole content, in the argument's element type."""
    import numpy as np

    dtype = argument.dtype.numpy
    if argument.nbytes > BUFFER_BYTES:
        raise InputError(
            f"{argument.label} has {argument.nbytes} bytes; content is made up to {BUFFER_BYTES}",
            hint="choose a smaller --dynamic-dim, or set the scalars that decide its size with --scalar",
        )
    whole: NDArray[Any] = np.zeros(argument.elements, dtype=dtype)
    at = 0
    for piece in content_pieces(argument, seed):
        whole[at : at + len(piece)] = piece if piece.dtype == dtype else piece.view(dtype)
        at += len(piece)
    return whole


def write_content(argument: BufferArg, seed: int, path: Path) -> None:
    """The content as a raw file; zeros take no room on disk."""
    with path.open("wb") as file:
        if argument.content is Content.ZERO:
            file.truncate(argument.nbytes)
            return
        for piece in content_pieces(argument, seed):
            file.write(piece.tobytes())
        file.truncate(argument.nbytes)


def _from_file(argument: BufferArg, path: Path) -> NDArray[Any]:
    """A .npy or .pt array, or raw bytes; it fills the buffer exactly."""
    import numpy as np

    shape: tuple[int, ...] = ()
    try:
        if path.suffix in (".npy", ".pt"):
            array = read_array(path)
            shape = array.shape
            flat = np.ascontiguousarray(array).reshape(-1)
            if flat.dtype.itemsize != argument.dtype.size:
                flat = flat.astype(argument.dtype.numpy)
        else:
            size = path.stat().st_size
            if size != argument.nbytes:
                raise InputError(
                    f"has {size} bytes, but {argument.label} takes {argument.nbytes} "
                    f"({argument.elements} x {argument.dtype.short})",
                    where=str(path),
                )
            flat = np.fromfile(path, dtype=argument.dtype.numpy)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except ValueError as error:
        raise InputError(f"is not a plain array: {error}", where=str(path)) from None
    if len(flat) != argument.elements:
        form = "x".join(map(str, shape)) or str(len(flat))
        raise InputError(
            f"is {form}, {len(flat)} elements, but {argument.label} takes {argument.elements}",
            where=str(path),
            hint="give an array of the tensor's own shape; open dimensions follow it",
        )
    raw: NDArray[Any] = flat.view(np.uint8).view(argument.dtype.numpy)
    return raw


def read_array(path: Path) -> NDArray[Any]:
    """The array of a .npy or .pt file."""
    from insight_trace.scene.torch_file import read_torch_file

    if path.suffix == ".pt":
        return read_torch_file(path)
    with readable(path):
        return load_npy(path)
