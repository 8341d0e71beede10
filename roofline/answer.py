"""What every question returns: data with SI units in its keys, and how that data is told.

`Answer` is a mapping of the JSON document, so a script indexes it as it would index `--json`; it shows itself as a
table in a terminal and in a notebook.  Nothing here computes; nothing here imports more than the standard library.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roofline import __version__
from roofline.units import number


@dataclass(frozen=True)
class Column:
    """One column of a table: the key of a row, the heading, its unit, and how a value is written."""

    key: str
    heading: str
    unit: str = ""
    show: Callable[[Any], str] | None = None
    scale: float = 1.0
    flush_right: bool = False

    @property
    def title(self) -> str:
        """Heading with its unit in brackets."""
        return f"{self.heading} [{self.unit}]" if self.unit not in ("", "1") else self.heading

    @property
    def numeric(self) -> bool:
        """Whether the column is set flush right."""
        return self.unit != "" or self.show is number or self.flush_right

    def text(self, row: Mapping[str, Any]) -> str:
        """The cell of a row; a missing value is a dash, never a zero."""
        value = row.get(self.key)
        if value is None:
            return "-"
        if self.show:
            return self.show(value)
        if isinstance(value, (list, tuple)):
            return "; ".join(str(v) for v in value) or "-"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return number(value / self.scale) if isinstance(value, (int, float)) else str(value)


@dataclass(frozen=True)
class Section:
    """A part of an explanation: a title, lines of text, and formulas as LaTeX."""

    title: str
    lines: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer(Mapping[str, Any]):
    """The data of one answer and how to tell it.

    name, as in "schema": "roofline/<name>/1"; data, the document; columns and table, which rows make the main table;
    notes, what must be said with any form of it (defaults used, roof, what is left out); sections, the explanation.
    """

    name: str
    data: Mapping[str, Any]
    columns: Sequence[Column] = ()
    table: str = "rows"
    title: str = ""
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    digest: str = ""
    no_answer: str = field(default="")

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The JSON document: data, schema, version and digest of the data files used."""
        head = {"schema": f"roofline/{self.name}/1", "version": __version__}
        if self.digest:
            head["data_digest"] = self.digest
        return {**head, **self.data, "notes": list(self.notes)}

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The rows of the main table."""
        return list(self.data.get(self.table, ()))

    def to_json(self) -> str:
        """One document, keys sorted, no NaN and no infinity."""
        return json.dumps(_clean(self.document), sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def _repr_markdown_(self) -> str:
        from roofline.tables import markdown

        return markdown(self)

    def __str__(self) -> str:
        from roofline.tables import terminal

        return terminal(self)

    __repr__ = __str__


def _clean(value: Any) -> Any:
    """Infinite and undefined numbers become null: JSON has no word for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): _clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(v) for v in value]
    return value
