"""YAML and JSON files of a user, read without trust: bounded size, depth and node count, no tags, no duplicate keys.

Both readers return plain dicts, lists, str, bool, int, float and None, or raise `BadFile` (exit code 3) with the dotted
path to the place.  Neither ever builds what the text asks for: YAML is assembled here from the parser's events, so that
a nested file stops at its 65th level and an alias bomb at its 50,000th node, before the memory is spent.

YAML scalars follow a strict core: `true` and `false` are the only booleans (`NO` is text), integers are decimal
(`017` and `1:30` are text), and floats carry a dot and a signed exponent, as PyYAML and every other reader agree on
them.  `3.35e12` therefore is text, and whoever wants a number there refuses it.

>>> parse_yaml("a: {b: [1, 2.5e+3, NO]}")
{'a': {'b': [1, 2500.0, 'NO']}}
>>> parse_yaml("a: {b: 1, b: 2}", "my.yaml")
Traceback (most recent call last):
roofline.errors.BadFile: my.yaml: a.b: got the key twice, expected every key once
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from roofline.errors import BadFile

MAX_BYTES = 2_000_000
MAX_DEPTH = 64
MAX_YAML_NODES = 50_000  # a fifth of a second of the event loop below; hardware.yaml has 10,000
MAX_JSON_NODES = 500_000  # the C parser of the standard library is faster
MAX_DIGITS = 100

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(
    r"(?:[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?|\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN))\Z"
)
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}  # type: ignore[dict-item]


def load_yaml(path: str) -> Any:
    """The one document of a YAML file of at most 2 MB.  Raises BadFile."""
    return parse_yaml(read_text(path), path)


def load_json(path: str, *, allow_infinity: bool = False) -> Any:
    """A JSON file of at most 2 MB.  `allow_infinity` accepts the spelling Infinity, never NaN.  Raises BadFile."""
    return parse_json(read_text(path), path, allow_infinity=allow_infinity)


def read_text(path: str) -> str:
    """The text of a UTF-8 file; more than 2 MB is refused before it is parsed.  Raises BadFile."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise BadFile(path, "", reason.lower(), "a readable file") from None
    if len(data) > MAX_BYTES:
        raise BadFile(path, "", "more than 2 MB", "a file of at most 2 MB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(path, f"byte {error.start}", f"0x{data[error.start]:02x}", "UTF-8 text") from None


def dotted(keys: list[Any] | tuple[Any, ...]) -> str:
    """A place in a document as text.

    >>> dotted(["accelerators", "x", "sources", 2, "kind"])
    'accelerators.x.sources[2].kind'
    """
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else ("." if text else "") + str(key)[:80]
    return text if len(text) <= 160 else text[:160] + "..."


# --- YAML ---------------------------------------------------------------------------------------------------------


def parse_yaml(text: str, file: str = "<text>") -> Any:
    """The one document of a YAML text.  Raises BadFile, which names `file`.

    >>> parse_yaml("a: [1, *b]", "my.yaml")
    Traceback (most recent call last):
    roofline.errors.BadFile: my.yaml: a[1]: got the alias *b, expected an anchor that is complete before it is used
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Assembler(file, yaml).document(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1} column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "text that is not YAML"
        wanted = f"at most {MAX_DEPTH} nested levels" if "nesting" in problem else "YAML"
        raise BadFile(file, where, problem, wanted) from None


class _Assembler:
    """Builds plain objects from parser events and counts expanded nodes."""

    def __init__(self, file: str, yaml: Any) -> None:
        self.file, self.yaml = file, yaml
        self.keys: list[Any] = []  # the path to where the parser stands
        self.nodes = 0
        self.anchors: dict[str, tuple[Any, int]] = {}  # name -> finished object and its expanded node count

    def fail(self, got: str, expected: str, note: str = "") -> BadFile:
        return BadFile(self.file, dotted(self.keys), got, expected, note)

    def document(self, events: Iterator[Any]) -> Any:
        """Take one document; more than one, or none, is refused."""
        found: list[Any] = []
        for event in events:
            if isinstance(event, self.yaml.DocumentStartEvent):
                if found:
                    raise self.fail("a second document", "one YAML document")
                found.append(self.node(next(events), events))
        if not found:
            raise self.fail("nothing", "one YAML document")
        return found[0]

    def node(self, event: Any, events: Iterator[Any]) -> Any:
        """The object that starts at `event`."""
        yaml, before = self.yaml, self.nodes
        self.count(1)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event.anchor)
        if event.tag is not None and event.tag != "!":
            raise self.fail(f"the tag {event.tag}", "plain YAML without tags")
        if isinstance(event, yaml.ScalarEvent):
            value = self.scalar(event)
        elif len(self.keys) >= MAX_DEPTH:
            raise self.fail(f"more than {MAX_DEPTH} nested levels", f"at most {MAX_DEPTH}")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self.sequence(events)
        else:
            value = self.mapping(events)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.nodes - before)
        return value

    def count(self, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_YAML_NODES:
            raise self.fail(f"more than {MAX_YAML_NODES:,} nodes once aliases are expanded", "a smaller document")

    def alias(self, name: str) -> Any:
        if name not in self.anchors:
            raise self.fail(f"the alias *{name}", "an anchor that is complete before it is used")
        value, nodes = self.anchors[name]
        self.count(nodes)
        return value

    def sequence(self, events: Iterator[Any]) -> list[Any]:
        items: list[Any] = []
        for event in events:
            if isinstance(event, self.yaml.SequenceEndEvent):
                break
            self.keys.append(len(items))
            items.append(self.node(event, events))
            self.keys.pop()
        return items

    def mapping(self, events: Iterator[Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for event in events:
            if isinstance(event, self.yaml.MappingEndEvent):
                break
            key = self.node(event, events) if isinstance(event, self.yaml.ScalarEvent) else None
            if not isinstance(key, str):
                shown = str(key) if isinstance(event, self.yaml.ScalarEvent) else "a key that is not plain text"
                raise self.fail(shown, "a key of text", "quote it if it looks like a number")
            self.keys.append(key)
            if key in made:
                raise self.fail("the key twice", "every key once")
            made[key] = self.node(next(events), events)
            self.keys.pop()
        return made

    def scalar(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:  # quoted, or a block of text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INT.match(text):
            if len(text) > MAX_DIGITS:
                raise self.fail(f"an integer of {len(text)} digits", f"at most {MAX_DIGITS} digits")
            return int(text)
        return _float(text) if text[:1] in "+-.0123456789" and _FLOAT.match(text) else text


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


# --- JSON ---------------------------------------------------------------------------------------------------------

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # the closing quote is optional, so that a scan never restarts
_BRACKET = re.compile(r"[\[{\]}]")
_SURROGATE = re.compile(r"\\u[dD][89abAB]")


class _Refused:
    """Stands in a parsed document for a value that is refused, until its path is known."""

    def __init__(self, got: str, expected: str) -> None:
        self.got, self.expected, self.key = got, expected, ""


def parse_json(text: str, file: str = "<text>", *, allow_infinity: bool = False) -> Any:
    """A JSON text.  Raises BadFile for what the standard library lets pass: duplicates, NaN, Infinity, 1e999.

    >>> parse_json('{"a": {"b": NaN}}', "config.json")
    Traceback (most recent call last):
    roofline.errors.BadFile: config.json: a.b: got NaN, expected a finite number
    """
    import json

    _scan(text, file)
    refused: list[_Refused] = []
    hooks = _hooks(refused, allow_infinity)
    try:
        made = json.loads(text, **hooks)
    except json.JSONDecodeError as error:
        raise BadFile(file, f"line {error.lineno} column {error.colno}", error.msg.lower(), "JSON") from None
    if refused:
        raise _placed(made, refused, file)
    if _SURROGATE.search(text):
        try:
            json.dumps(made, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadFile(file, "", "half of a surrogate pair", "text that can be printed") from None
    return made


def _scan(text: str, file: str) -> None:
    """Refuse nesting and node counts before the recursive parser sees the text."""
    bare = _STRING.sub('""', text)
    if bare.count(",") + bare.count("[") + bare.count("{") > MAX_JSON_NODES:
        raise BadFile(file, "", f"more than {MAX_JSON_NODES:,} values", "a smaller document")
    depth = 0
    for match in _BRACKET.finditer(bare):
        depth += 1 if match[0] in "[{" else -1
        if depth > MAX_DEPTH:
            where = f"line {bare.count(chr(10), 0, match.start()) + 1}"
            raise BadFile(file, where, f"more than {MAX_DEPTH} nested levels", f"at most {MAX_DEPTH}")


def _hooks(refused: list[_Refused], allow_infinity: bool) -> dict[str, Any]:
    """Hooks of `json.loads` that put a `_Refused` where the standard library is too lenient."""

    def refuse(got: str, expected: str) -> _Refused:
        refused.append(_Refused(got, expected))
        return refused[-1]

    def constant(text: str) -> Any:
        if allow_infinity and text != "NaN":
            return float(text)
        return refuse(text, "a finite number")

    def integer(text: str) -> Any:
        if len(text) <= MAX_DIGITS:
            return int(text)
        return refuse(f"an integer of {len(text)} digits", f"at most {MAX_DIGITS} digits")

    def real(text: str) -> Any:
        value = float(text)
        return value if math.isfinite(value) else refuse(text, "a number that a float can hold")

    def pairs(items: list[tuple[str, Any]]) -> Any:
        made = dict(items)
        if len(made) == len(items):
            return made
        seen: set[str] = set()
        mark = refuse("the key twice", "every key once")
        mark.key = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return mark

    return {"parse_constant": constant, "parse_int": integer, "parse_float": real, "object_pairs_hook": pairs}


def _placed(made: Any, refused: list[_Refused], file: str) -> BadFile:
    """The error for the first refused value that is still in the document, with its path."""
    stack: list[tuple[Any, tuple[Any, ...]]] = [(made, ())]
    while stack:
        value, keys = stack.pop()
        if isinstance(value, _Refused):
            return BadFile(file, dotted((*keys, value.key) if value.key else keys), value.got, value.expected)
        if isinstance(value, (dict, list)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            stack.extend((child, (*keys, key)) for key, child in items)
    return BadFile(file, refused[0].key, refused[0].got, refused[0].expected)
