"""How many elements of an argument a kernel can reach: the largest of its views, partitions and accesses."""

from __future__ import annotations

from dataclasses import dataclass

from insight_trace.ptoas.affine import Affine
from insight_trace.ptoas.pto_facts import Facts, Partition, View


@dataclass(frozen=True, slots=True)
class Extent:
    elements: int | None  # None: nothing says
    unbounded: tuple[int, ...]  # lines of accesses whose end only the run decides


def view_elements(view: View) -> int | None:
    """Elements up to the end of a view; 0 for an empty one."""
    return _end(
        view.offset, [(extent, stride) for extent, stride in zip(view.shape, view.strides, strict=True)]
    )


def partition_elements(partition: Partition) -> int | None:
    """Elements up to the end of a partition, at the largest offsets that its loops reach."""
    view = partition.view
    sizes = [offset + size for offset, size in zip(partition.offsets, partition.sizes, strict=True)]
    if any((size.high or 0) <= 0 for size in partition.sizes if size.high is not None):
        return 0
    return _end(view.offset, list(zip(sizes, view.strides, strict=True)))


def _end(offset: Affine, dimensions: list[tuple[Affine, Affine]]) -> int | None:
    # summed as one value before bounds are taken, so that terms which cancel do cancel
    last = offset
    for extent, stride in dimensions:
        if extent.high is not None and extent.high <= 0:
            return 0
        last = last + (extent - Affine(1)) * stride
    high = last.high
    return None if high is None else max(0, high + 1)


def extent_of(argument: str, facts: Facts, element_bytes: int) -> Extent:
    """The extent of one pointer argument."""
    known: list[int] = []
    unbounded: list[int] = []
    for view in facts.views:
        if view.argument == argument:
            elements = view_elements(view)
            known.append(elements) if elements is not None else unbounded.append(view.line)
    for partition in facts.partitions:
        if partition.view.argument == argument:
            elements = partition_elements(partition)
            known.append(elements) if elements is not None else unbounded.append(partition.line)
    for access in facts.accesses:
        if access.argument == argument and access.elements is not None:
            high = access.elements.high
            slots = -(-access.bytes_ // element_bytes)
            known.append(high + slots) if high is not None else unbounded.append(access.line)
    return Extent(max(known) if known else None, tuple(unbounded))


def dimensions_beyond(partition: Partition) -> int:
    """In how many dimensions a partition leaves its view for certain: it stands in no branch."""
    if partition.guarded:
        return 0
    count = 0
    for offset, size, extent in zip(partition.offsets, partition.sizes, partition.view.shape, strict=True):
        end = (offset + size).high
        past = end is not None and extent.high is not None and end > extent.high
        count += past or (offset.low is not None and offset.low < 0)
    return count
