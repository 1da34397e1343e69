"""What the user changes about reconstructed arguments: `--set-arg`, `--restore-arg`, `--fill random`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from insight_trace.arguments.slots import (
    Fill,
    Random,
    Recorded,
    ReplayArguments,
    ReplayScalar,
    ReplaySlot,
    ReplayTensor,
    Zero,
)
from insight_trace.dtypes import (
    DoesNotFitError,
    DType,
    decode_element,
    dtype_named,
    encode_element,
    scalar_bits,
)
from insight_trace.errors import RequestError
from insight_trace.model import Dispatch, Role, TensorArg, Tier

_SLOT_TEXT = re.compile(r"\d{1,4}", re.ASCII)


class SetArg(Struct, frozen=True):
    """`--set-arg SLOT=VALUE`: a number, true/false, a bit pattern 0x…, or a number of a type, f32:0.5."""

    slot: int
    text: str
    value: int | float | bool
    is_bits: bool = False
    dtype: DType | None = None  # the type named before the colon


class Overrides(Struct, frozen=True):
    """All changes of one request. Holding one means that they do not contradict each other."""

    set_args: tuple[SetArg, ...] = ()
    restore: tuple[int, ...] = ()
    random_seed: int | None = None  # None: what has no content stays zero


def parse_overrides(
    set_args: Iterable[str] = (),
    restore_args: Iterable[str] = (),
    fill: str | None = None,
    seed: int | None = None,
) -> Overrides:
    """Overrides from the words of the command line."""
    settings = tuple(_parse_set(text) for text in set_args)
    restored = tuple(_parse_slot(text, f"--restore-arg {text}") for text in restore_args)
    _refuse_twice([setting.slot for setting in settings], "--set-arg")
    _refuse_twice(restored, "--restore-arg")
    both = sorted({setting.slot for setting in settings} & set(restored))
    if both:
        raise RequestError(
            f"slot {both[0]} is both set and restored",
            hint="give either --set-arg or --restore-arg for a slot",
        )
    if fill not in (None, "zero", "random"):
        raise RequestError(f"--fill {fill} is not known", hint="--fill takes zero or random")
    if seed is not None and fill != "random":
        raise RequestError("--seed without --fill random has no effect", hint="add --fill random")
    if seed is not None and seed < 0:
        raise RequestError(f"--seed {seed} is negative")
    return Overrides(settings, restored, (seed or 0) if fill == "random" else None)


def apply_overrides(
    arguments: ReplayArguments, overrides: Overrides, dispatch: Dispatch | None = None
) -> ReplayArguments:
    """The arguments with the user's changes; `dispatch` is where restored slots find their payload."""
    arguments = _with_random(arguments, overrides.random_seed)
    for slot in overrides.restore:
        arguments = arguments.replaced(_restored(arguments, slot, dispatch))
    for setting in overrides.set_args:
        if setting.dtype is not None and arguments.at(setting.slot) is None:
            arguments = arguments.added(_new_scalar(setting, setting.dtype))
            continue
        item = _slot(arguments, setting.slot, f"--set-arg {setting.slot}={setting.text}")
        new, notes = (
            _set_scalar(item, setting) if isinstance(item, ReplayScalar) else _set_tensor(item, setting)
        )
        arguments = arguments.replaced(new, notes=notes)
    return arguments


def _parse_slot(text: str, what: str) -> int:
    if not _SLOT_TEXT.fullmatch(text.strip()):
        raise RequestError(f"{what}: '{text}' is not a slot number")
    return int(text)


def _parse_set(text: str) -> SetArg:
    slot_text, equals, value_text = text.partition("=")
    if not equals or not value_text.strip():
        raise RequestError(f"--set-arg {text}: SLOT=VALUE is needed", hint="for example --set-arg 4=16")
    slot = _parse_slot(slot_text, f"--set-arg {text}")
    word = value_text.strip()
    dtype = None
    if ":" in word:
        dtype_text, _, word = word.partition(":")
        dtype = dtype_named(dtype_text.strip())
        if dtype is None:
            raise RequestError(
                f"--set-arg {text}: there is no type '{dtype_text}'", hint="for example f32:0.5"
            )
    if word.casefold().startswith("0x") and dtype is None:
        try:
            bits = int(word, 16)
        except ValueError:
            bits = 2**64
        if bits >= 2**64:
            raise RequestError(f"--set-arg {text}: '{word}' is not a bit pattern of at most 64 bits")
        return SetArg(slot, value_text, bits, is_bits=True)
    return SetArg(slot, value_text, _number(word, text), dtype=dtype)


def _number(word: str, text: str) -> int | float | bool:
    if word.casefold() in ("true", "false"):
        return word.casefold() == "true"
    for convert in (lambda w: int(w, 0), int, float):
        try:
            number: int | float = convert(word)
        except ValueError:
            continue
        return number
    raise RequestError(
        f"--set-arg {text}: '{word}' is not a number", hint="for example 4=16, 4=0.5, 4=0x3f800000"
    )


def _refuse_twice(slots: Iterable[int], flag: str) -> None:
    seen: set[int] = set()
    for slot in slots:
        if slot in seen:
            raise RequestError(f"{flag} names slot {slot} twice")
        seen.add(slot)


def _slot(arguments: ReplayArguments, slot: int, what: str) -> ReplaySlot:
    item = arguments.at(slot)
    if item is None:
        present = ", ".join(str(other.slot) for other in arguments.slots) or "none"
        raise RequestError(
            f"{what}: the kernel has no slot {slot}",
            hint=f"slots present: {present}; {slot}=u64:VALUE adds a scalar",
        )
    return item


def _new_scalar(setting: SetArg, dtype: DType) -> ReplayScalar:
    """A scalar in a slot that the source left empty. Its type was named, so this is meant."""
    origin = f"set to {setting.text}"
    return ReplayScalar(setting.slot, dtype, _bits(dtype, setting), Tier.FILLED, origin=origin)


def _bits(dtype: DType, setting: SetArg) -> int:
    try:
        return scalar_bits(dtype, setting.value)
    except DoesNotFitError as error:
        fraction = isinstance(setting.value, float) and not dtype.is_float
        hint = f"for a float's bits write {setting.slot}=f32:{setting.text}" if fraction else ""
        raise RequestError(f"--set-arg {setting.slot}={setting.text}: {error}", hint=hint) from None


def _set_scalar(item: ReplayScalar, setting: SetArg) -> tuple[ReplaySlot, tuple[str, ...]]:
    dtype = setting.dtype or item.dtype
    bits = int(setting.value) if setting.is_bits else _bits(dtype, setting)
    new = replace(item, dtype=dtype, bits=bits, tier=Tier.FILLED, origin=f"set to {setting.text}")
    grown = not dtype.is_float and dtype == item.dtype and new.value > item.value
    note = (
        f"slot {item.slot}: {setting.text} is larger than the recorded {item.value}; buffers may be too small"
    )
    return new, ((note,) if grown else ())


def _set_tensor(item: ReplayTensor, setting: SetArg) -> tuple[ReplaySlot, tuple[str, ...]]:
    what = f"--set-arg {setting.slot}={setting.text}"
    if setting.dtype is not None and setting.dtype != item.dtype:
        raise RequestError(f"{what}: the slot is {item.dtype.name}, not {setting.dtype.name}")
    value = setting.value
    try:
        if setting.is_bits:
            if int(value) >> (8 * item.dtype.size):
                raise DoesNotFitError(f"{setting.text} has more bits than {item.dtype.name}")
            value = decode_element(item.dtype, int(value).to_bytes(item.dtype.size, "little"))
        encode_element(item.dtype, value)
    except DoesNotFitError as error:
        raise RequestError(f"{what}: {error}") from None
    origin = f"set to {setting.text}"
    return replace(item, content=Fill(value), tier=Tier.FILLED, origin=origin), ()


def _restored(arguments: ReplayArguments, slot: int, dispatch: Dispatch | None) -> ReplaySlot:
    what = f"--restore-arg {slot}"
    item = _slot(arguments, slot, what)
    if isinstance(item, ReplayScalar):
        raise RequestError(
            f"{what}: the slot is a scalar, which has no payload", hint="--set-arg sets a scalar"
        )
    recorded = next((a for a in dispatch.arguments if a.slot == slot), None) if dispatch else None
    if not isinstance(recorded, TensorArg):
        raise RequestError(f"{what}: there is no dump to restore it from", hint="give --dump-dir")
    if recorded.before is None:
        if item.role is Role.OUTPUT:
            raise RequestError(f"{what}: the slot is an output, which has no content before dispatch")
        raise RequestError(
            f"{what}: no payload was recorded for it before dispatch",
            hint="mark the tensor with dump() in the orchestration, or capture with --dump-args 2",
        )
    if recorded.before.truncated:
        raise RequestError(f"{what}: its payload was cut off when it was recorded")
    content = Recorded(recorded.before)
    return replace(item, content=content, tier=Tier.EXACT, origin="restored, before dispatch")


def _with_random(arguments: ReplayArguments, seed: int | None) -> ReplayArguments:
    if seed is None:
        return arguments
    made_up = [
        replace(tensor, content=Random(seed), origin=f"random, seed {seed}")
        for tensor in arguments.tensors
        if tensor.tier is Tier.SYNTHETIC and isinstance(tensor.content, Zero)
    ]
    return arguments.replaced(*made_up)
