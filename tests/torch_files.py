"""Writes `.pt` files as torch does, from their format alone, so that tests need no torch."""

import io
import struct
import zipfile

import numpy as np

STORAGES = {
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
}


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    raw = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def names(module, name):
    return f"c{module}\n{name}\n".encode()


def numbers(values):
    return b"(" + b"".join(number(int(v)) for v in values) + b"t"


def description(dtype, shape, strides, offset=0, count=0, key="0"):
    """The pickle of one tensor."""
    known = dtype in STORAGES
    storage = names("torch", STORAGES[dtype]) if known else names("torch.storage", "UntypedStorage")
    rebuild = "_rebuild_tensor_v2" if known else "_rebuild_tensor_v3"
    parts = [b"\x80\x02", names("torch._utils", rebuild), b"(("]
    parts += [text("storage"), storage, text(key), text("cpu"), number(count), b"tQ", number(offset)]
    parts += [numbers(shape), numbers(strides), b"\x89", names("collections", "OrderedDict"), b")R"]
    parts += [] if known else [names("torch", dtype)]
    return b"".join([*parts, b"tR."])


def archive(pickle, storage, compress=zipfile.ZIP_STORED, byteorder=b"little"):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compress) as file:
        entries = (("data.pkl", pickle), ("byteorder", byteorder), ("data/0", storage), ("version", b"3\n"))
        for name, content in entries:
            file.writestr(zipfile.ZipInfo(f"archive/{name}"), content, compress)
    return made.getvalue()


def torch_file(array):
    """The bytes of a .pt file that holds the array."""
    array = np.asarray(array)
    strides = [s // array.dtype.itemsize for s in np.ascontiguousarray(array).strides[: array.ndim]]
    return archive(
        description(array.dtype.name, array.shape, strides, count=array.size),
        np.ascontiguousarray(array).tobytes(),
    )
