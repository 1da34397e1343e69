"""Where in the kernel's source an instruction of its shared object comes from."""

from __future__ import annotations

from pathlib import Path


def line_of_crash(shared_object: str, offset: int) -> tuple[str, int] | None:
    """File and line of the instruction at `offset`, from the debug lines; None without them."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with Path(shared_object).open("rb") as file:
            elf = ELFFile(file)
            if not elf.has_dwarf_info():
                return None
            dwarf = elf.get_dwarf_info()
            for unit in dwarf.iter_CUs():
                program = dwarf.line_program_for_CU(unit)
                if program is None:
                    continue
                found = _search(program, offset)
                if found:
                    return found
    except (OSError, ELFError):
        return None
    return None


def _search(program: object, offset: int) -> tuple[str, int] | None:
    header = program.header  # type: ignore[attr-defined]
    before = None
    for entry in program.get_entries():  # type: ignore[attr-defined]
        state = entry.state
        if state is None:
            continue
        if before is not None and before.address <= offset < state.address:
            return _file_name(header, before.file), before.line
        before = None if state.end_sequence else state
    return None


def _file_name(header: object, index: int) -> str:
    version = header["version"]  # type: ignore[index]
    files, folders = header["file_entry"], header["include_directory"]  # type: ignore[index]
    entry = files[index if version >= 5 else index - 1]
    name = entry.name.decode(errors="replace")
    if name.startswith("/"):
        return str(name)
    if version >= 5:
        folder = folders[entry.dir_index]
    elif entry.dir_index:
        folder = folders[entry.dir_index - 1]
    else:
        return str(name)
    return f"{folder.decode(errors='replace')}/{name}"
