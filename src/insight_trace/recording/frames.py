"""Which line of the kernel an instruction belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Frames inside the vendor's toolkit say nothing about the kernel that called it.
TOOLKIT = "ascend-toolkit"


def user_frame(stack: str) -> str:
    """The innermost frame outside the toolkit, `file:line`; the innermost one where all are inside."""
    frames = [frame for frame in stack.split("\n") if frame]
    for frame in frames:
        if TOOLKIT not in frame:
            return frame
    return frames[0] if frames else ""


def user_frames(stacks: Sequence[str]) -> list[str]:
    return [user_frame(stack) for stack in stacks]


def python_frame(stack: str) -> str:
    """The frame of the user's Python behind generated lines; "" where there is none."""
    last = stack.rpartition("\n")[2]
    return last if split_frame(last)[0].endswith(".py") else ""


def python_frames(stacks: Sequence[str]) -> dict[str, str]:
    """By line of the kernel, the line of the user's Python that it was made of, where that is known."""
    return {user_frame(stack): python for stack in stacks if (python := python_frame(stack))}


def split_frame(frame: str) -> tuple[str, int]:
    """`("dir/kernel.cpp", 71)`; line 0 where the frame names none."""
    path, _, line = frame.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (frame, 0)


def short_frame(frame: str) -> str:
    """`kernel.cpp:71`, for a line of text that a person reads."""
    path, line = split_frame(frame)
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{line}" if line else name


def line_text(sources: Mapping[str, bytes], frame: str) -> str:
    """The text of the line, without its indentation; "" where the source is not at hand."""
    path, line = split_frame(frame)
    content = sources.get(path)
    if content is None or not line:
        return ""
    lines = content.decode("utf-8", "replace").splitlines()
    return lines[line - 1].strip() if line <= len(lines) else ""
