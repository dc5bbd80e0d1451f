"""JSON Schema (draft 7) of what hwgen writes, made of the records and typed dictionaries that it is written from.

============================  ==================================================================
annotation                    schema
============================  ==================================================================
``str``, ``float`` and so on  a type; ``Literal`` is an ``enum``
``X | None``                  the same, or null
``tuple[X, ...]``             an array
``Mapping[str, X]``           an object with names as keys
dataclass, ``TypedDict``      a definition, with what its docstring says of each key
a configuration               the definition `CONFIGURATION`, from the fields of the configuration
============================  ==================================================================

Keys that are not named are allowed: a version stays the same when a key comes along.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any

from hwgen.config import TensorCoreConfig
from hwgen.formats import BlockFormat
from hwgen.report.schema import Design, may_lack
from hwgen.report.schema_page import described
from hwgen.verilog.record import Record

__all__ = ["CONFIGURATION", "DRAFT", "json_schema"]

DRAFT = "http://json-schema.org/draft-07/schema#"
CONFIGURATION = "Configuration"
"""Name of the definition of a configuration."""

_PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_NULL = {"type": "null"}


def json_schema(form: Any, name: str, version: int, title: str, constants: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a document.

    Parameters
    ----------
    form
        What the document is written from: a dataclass, a ``TypedDict``, or an annotation made of such.
    name, version
        Of the schema; both are in its ``$id``.
    title
        What the document is.
    constants
        Keys of the document that always have one value.

    Returns
    -------
    dict
        JSON Schema, draft 7, that refers to no other file.
    """
    definitions: dict[str, Any] = {}
    root = _schema(form, definitions)
    if set(root) == {"$ref"}:
        root = definitions.pop(root["$ref"].rpartition("/")[2])
    if constants:
        fixed = {key: {"const": value} for key, value in constants.items()}
        # In place of what an annotation can say of them.
        root["properties"] = {**fixed, **{key: each for key, each in root["properties"].items() if key not in fixed}}
        root["required"] = [*fixed, *(key for key in root["required"] if key not in fixed)]
    head = {"$schema": DRAFT, "$id": f"urn:hwgen:{name}:{version}", "title": title}
    # What a record is in itself says less than what the document is.
    return {**head, **{key: each for key, each in root.items() if key != "title"}, "definitions": definitions}


def _schema(form: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of an annotation; records that it names are added to the definitions."""
    origin, given = typing.get_origin(form), typing.get_args(form)
    if origin is typing.Annotated:
        parts = [_schema(each, definitions) for each in given[1:]]
        return parts[0] if len(parts) == 1 else {"allOf": parts}
    if form is Any:
        return {}
    if form in _PLAIN:
        return {"type": _PLAIN[form]}
    if origin is typing.Literal:
        return {"enum": list(given)}
    if origin in (typing.Union, types.UnionType):
        (inner,) = (each for each in given if each is not type(None))
        found = _schema(inner, definitions)
        return {"type": [found["type"], "null"]} if set(found) == {"type"} else {"anyOf": [found, _NULL]}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(given[0], definitions)}
    if origin is not None:
        return {"type": "object", "additionalProperties": _schema(given[1], definitions)}
    if form in (Design, TensorCoreConfig):
        return _referred(CONFIGURATION, lambda: _configuration(definitions), definitions)
    return _referred(form.__name__, lambda: _record(form, definitions), definitions)


def _referred(name: str, made: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """A reference to a definition, which is made when it is first met."""
    if name not in definitions:
        definitions[name] = {}  # its place, in the order of reading
        definitions[name] = made()
    return {"$ref": f"#/definitions/{name}"}


def _record(form: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """An object with the keys of a dataclass or of a ``TypedDict``."""
    hints = typing.get_type_hints(form, include_extras=True)
    if typing.is_typeddict(form):
        names = list(hints)
        required = [name for name in names if name in form.__required_keys__]
    else:
        names = [field.name for field in dataclasses.fields(form)]
        lacking = may_lack(form)
        if issubclass(form, Record):
            # Such a key is left out where there is nothing to say, and never null.
            lacking = form.may_lack()
            hints |= {name: _without_none(hints[name]) for name in lacking}
        required = [name for name in names if name not in lacking]
    meanings = described(form)
    properties = {name: _described(_schema(hints[name], definitions), meanings[name]) for name in names}
    return {"title": _summary(form), "type": "object", "properties": properties, "required": required}


def _without_none(form: Any) -> Any:
    """An annotation ``X | None`` as ``X``; another as it is."""
    given = [each for each in typing.get_args(form) if each is not types.NoneType]
    return given[0] if len(given) < len(typing.get_args(form)) else form


def _configuration(definitions: dict[str, Any]) -> dict[str, Any]:
    """An object with the fields of a configuration; formats by name, and what goes without saying left out."""
    hints = typing.get_type_hints(TensorCoreConfig)
    meanings = described(TensorCoreConfig)
    properties, required = {}, []
    for field in dataclasses.fields(TensorCoreConfig):
        form = str if hints[field.name] is BlockFormat else hints[field.name]
        properties[field.name] = _described(_schema(form, definitions), meanings[field.name])
        if field.default is dataclasses.MISSING:
            required.append(field.name)
    return {"title": _summary(TensorCoreConfig), "type": "object", "properties": properties, "required": required}


def _described(schema: dict[str, Any], meaning: str) -> dict[str, Any]:
    words = f"{meaning[0].upper()}{meaning[1:]}.".replace("``", "`")
    # Beside a reference draft 7 reads nothing.
    return {"allOf": [schema], "description": words} if "$ref" in schema else {**schema, "description": words}


def _summary(form: type) -> str:
    return " ".join((inspect.getdoc(form) or "").partition("\n\n")[0].split()).rstrip(".")
