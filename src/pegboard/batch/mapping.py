"""Conversion of rows to arguments of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from pegboard.batch.errors import MappingError
from pegboard.batch.rows import Row, RowsFormat
from pegboard.errors import FormFaults
from pegboard.forms.pairs import arguments_from_pairs, property_names
from pegboard.models import JsonObject, ToolSpec


class ColumnMap:
    """The columns that fill the parameters of a tool.

    A column with the name of a parameter, or of an alias, fills it. `--map` fills a parameter from another column; a
    dotted parameter such as `filter.name` fills a part of one. Then a CSV column with the parameter's name doesn't. A
    CSV value is converted like a value of `--arg`; an empty one leaves the parameter unset. Values of JSON Lines keep
    their types. A JSON row is an object of arguments as a whole, unless there is a `--map`; then its other keys are
    ignored, as are other columns of a CSV file.

    Args:
        spec: The tool.
        pairs: Values of `--map`, as `param=column`.
        given: Arguments that every row starts from; None for an untouched form.
        format: Format of the file.
        columns: Columns of a CSV file.

    Raises:
        MappingError: A parameter or a column doesn't exist, or no column is used.
    """

    def __init__(
        self,
        spec: ToolSpec,
        pairs: Iterable[str] = (),
        *,
        given: JsonObject | None = None,
        format: RowsFormat = "jsonl",  # noqa: A002 - the attribute's name
        columns: Sequence[str] = (),
    ) -> None:
        self._spec = spec
        self._given = given
        self._format = format
        self._names = property_names(spec.input_schema)
        self._known = {**{name: name for name in self._names}, **spec.parameter_aliases}
        self.columns: dict[str, str] = {}
        """Parameter → column, for those that `--map` names, and for a CSV file all others."""
        self.ignored: tuple[str, ...] = ()
        """Columns of a CSV file that fill no parameter."""
        for pair in pairs:
            self._add(pair, columns)
        self._is_whole = format == "jsonl" and not self.columns
        if format == "csv":
            self._add_named(columns)

    def arguments(self, row: Row) -> JsonObject:
        """Return the arguments of a call for a row, not validated as a whole.

        Raises:
            FormFaults: A CSV value can't be converted.
        """
        if self._format == "csv":
            pairs = [f"{name}={text}" for name, column in self.columns.items() if (text := row.values.get(column))]
            schema, aliases = self._spec.input_schema, self._spec.parameter_aliases
            return arguments_from_pairs(schema, pairs, given=self._given, aliases=aliases)
        if self._is_whole:
            return {**self._given, **self._by_parameter(row.values)} if self._given else row.values
        named = {name: value for name, value in row.values.items() if name in self._known}
        found = {**(self._given or {}), **self._by_parameter(named)}
        for name, column in self.columns.items():
            for value in _look_up(row.values, column):
                for alias in self._aliases_of(name):
                    found.pop(alias, None)
                self._set(found, name, value)
        return found

    def check(self, arguments: JsonObject) -> str:
        """Return why the arguments are invalid, or an empty text."""
        from pegboard.schema.arguments import prepare

        try:
            prepare(self._spec, arguments)
        except FormFaults as faults:
            return str(faults)
        return ""

    def _by_parameter(self, values: JsonObject) -> JsonObject:
        from pegboard.schema.arguments import by_parameter

        return by_parameter(values, self._spec.parameter_aliases)

    def _aliases_of(self, name: str) -> list[str]:
        return [alias for alias, parameter in self._spec.parameter_aliases.items() if parameter == name]

    def _add(self, pair: str, columns: Sequence[str]) -> None:
        name, equals, column = (part.strip() for part in pair.partition("="))
        if not (name and equals and column):
            raise MappingError(f"The mapping {pair!r} can't be used: write it as PARAMETER=COLUMN.")
        head = name if name in self._known else name.partition(".")[0]
        if self._known and head not in self._known and self._is_closed():
            raise MappingError(
                f"The mapping {pair!r} can't be used: {self._spec.name} has no parameter {head!r}."
                f" It has: {', '.join(sorted(self._names))}."
            )
        if self._format == "csv" and column not in columns:
            raise MappingError(
                f"The mapping {pair!r} can't be used: the file has no column {column!r}. It has: {', '.join(columns)}."
            )
        name = self._known.get(head, head) + name[len(head) :]
        if name in self.columns:
            raise MappingError(f"The mapping {pair!r} can't be used: `{name}` is mapped twice.")
        self.columns[name] = column

    def _add_named(self, columns: Sequence[str]) -> None:
        chosen, mapped = tuple(self.columns), set(self.columns.values())
        ignored = []
        for column in columns:
            head = column if column in self._known else column.partition(".")[0]
            name = self._known.get(head, head) + column[len(head) :]
            is_free = name not in self.columns and not any(_overlap(name, other) for other in chosen)
            if head in self._known and is_free:
                self.columns[name] = column
            elif column not in mapped:
                ignored.append(column)
        self.ignored = tuple(ignored)
        if not self.columns:
            raise MappingError(
                f"No column of the file is a parameter of {self._spec.name}. Columns: {', '.join(columns)}."
                f" Parameters: {', '.join(sorted(self._names)) or 'none'}."
                " Map them: PARAMETER=COLUMN."
            )
        required = self._spec.input_schema.get("required")
        filled = {self._top(name) for name in (*self.columns, *(self._given or {}))}
        missing = [name for name in (required if isinstance(required, list) else ()) if name not in filled]
        if missing:
            raise MappingError(
                f"{self._spec.name} requires {', '.join(f'`{name}`' for name in missing)}, and no column fills"
                f" {'it' if len(missing) == 1 else 'them'}. Columns: {', '.join(columns)}."
                " Map one: PARAMETER=COLUMN."
            )

    def _top(self, name: str) -> str:
        name = self._known.get(name, name)
        return name if name in self._names else name.partition(".")[0]

    def _is_closed(self) -> bool:
        return self._spec.input_schema.get("additionalProperties") is False

    def _set(self, arguments: JsonObject, name: str, value: JsonValue) -> None:
        if name in self._names or "." not in name:
            arguments[name] = value
            return
        *parents, last = name.split(".")
        target = arguments
        for parent in parents:
            inner = target.get(parent)
            child = dict(inner) if isinstance(inner, dict) else {}
            target[parent] = child
            target = child
        target[last] = value


def _overlap(name: str, other: str) -> bool:
    """Return whether two names are the same parameter, or one is a part of the other."""
    return f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}.")


def _look_up(values: JsonObject, column: str) -> tuple[JsonValue, ...]:
    """Return the value of a key, or of a dotted path, as the only item; nothing if it is missing."""
    if column in values:
        return (values[column],)
    found: JsonValue = values
    for part in column.split("."):
        if not isinstance(found, dict) or part not in found:
            return ()
        found = found[part]
    return (found,)
