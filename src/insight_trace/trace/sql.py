"""SQL over a recording: one question, read-only, with no way to the files of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from insight_trace.errors import RequestError, did_you_mean
from insight_trace.recording.store import Recording
from insight_trace.trace.sql_tables import TABLES, SqlTable

if TYPE_CHECKING:
    import duckdb

# A question sees what is registered for it and nothing else.
_CLOSED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}
_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of columns, and the rows as they come."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def ask(recording: Recording, sql: str) -> Answer:
    """The answer to one `select`; tables are those of `TABLES`, made when the question names them."""
    try:
        import duckdb
    except ImportError as error:
        raise RequestError(
            "query needs DuckDB, which is not installed", hint="pip install 'insight-trace[query]'"
        ) from error
    connection = duckdb.connect(":memory:", config=_CLOSED)
    try:
        _select_alone(connection, sql)
        made: set[str] = set()
        # every word that is the name of a table; one that is not meant as one costs a moment and nothing else
        for name in sorted({word.lower() for word in re.findall(r"\w+", sql)} & set(public_tables())):
            _provide(connection, recording, name, made)
        connection.execute("set lock_configuration = true")
        cursor = connection.execute(sql)
    except duckdb.Error as error:
        # an exception of Python's comes back as text: one that a signal raised is no fault of the question
        if re.search(r"\b(KeyboardInterrupt|Terminated)\b", str(error)):
            raise KeyboardInterrupt from None
        raise _explained(str(error)) from error
    return Answer(tuple(column[0] for column in cursor.description or ()), _rows(cursor))


def _select_alone(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise RequestError(
            f"{len(statements)} statements where one select is taken", hint="ask one question at a time"
        )
    kind = statements[0].type.name
    if kind not in ("SELECT", "EXPLAIN"):
        raise RequestError(
            f"a recording can be read, and this is a statement of type {kind}", hint="write a select"
        )


def _provide(connection: duckdb.DuckDBPyConnection, recording: Recording, name: str, made: set[str]) -> None:
    """Registers a table and what it is made of."""
    if name in made:
        return
    made.add(name)
    table = TABLES[name]
    for needed in table.needs:
        _provide(connection, recording, needed, made)
    if table.columns is not None:
        connection.register(name, dict(table.columns(recording)))
    elif table.view:
        connection.execute(f'create view "{name}" as {table.view}')
    else:
        _small(connection, recording, name, table)


def _small(connection: duckdb.DuckDBPyConnection, recording: Recording, name: str, table: SqlTable) -> None:
    """Rows as columns of objects, cast to their types: an empty table has them, too."""
    import numpy as np

    assert table.rows is not None
    rows = list(table.rows(recording))
    columns = {}
    for place, column in enumerate(table.meaning):
        values = np.empty(len(rows), object)
        values[:] = [row[place] for row in rows]
        columns[column] = values
    connection.register(f"{name} rows", columns)
    casts = (
        f'cast("{column}" as {kind}) as "{column}"'
        for column, kind in zip(table.meaning, table.types, strict=True)
    )
    connection.execute(f'create view "{name}" as select {", ".join(casts)} from "{name} rows"')


def _rows(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    import duckdb

    try:
        while found := cursor.fetchmany(_AT_ONCE):
            yield from found
    except duckdb.Error as error:
        raise _explained(str(error)) from error


def public_tables() -> dict[str, SqlTable]:
    return {name: table for name, table in TABLES.items() if not name.startswith("_")}


def _explained(text: str) -> RequestError:
    """DuckDB's message with what can be done; its own guesses name tables that are not there."""
    what, _, where = text.partition("\n\n")
    what = what.split("\nDid you mean")[0]
    missing = re.search(r"Table with name (\S+) does not exist", what)
    names = list(public_tables())
    if missing:
        guess = did_you_mean(missing[1], names, "did you mean {}? ")
        return RequestError(
            f"there is no table {missing[1]}{_place(where)}", hint=f"{guess}tables: {', '.join(names)}"
        )
    what = re.sub(r"^[\w ]+ Error: ", "", what).replace("\n", "; ")
    return RequestError(
        f"{what}{_place(where)}", hint="`insight-trace query WORKSPACE` lists tables and columns"
    )


def _place(where: str) -> str:
    """` in line 2: …`, from DuckDB's drawing of the place."""
    line = re.match(r"LINE (\d+): *([^\n]*)", where)
    return f" (line {line[1]}: {line[2].strip()})" if line else ""
