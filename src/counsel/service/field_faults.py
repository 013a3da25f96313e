"""Faults of fields, as pydantic finds them, in one sentence: the field, its value, what to do."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from counsel._arrays import brief

WHOLE = "whole"
"""The type of faults whose message is a sentence of its own."""

PARTS = ("body", "query", "path", "header")
"""Where fields of a request are; their names say it."""

KINDS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a text",
}
"""What a value must be, by the type of its fault."""

MOST_DIGITS = 1e30
"""Numbers above are not written out."""


def sentence_of(fault: Mapping[str, Any]) -> str:
    """Return a fault as a sentence that names the field and its value, and says what to do."""
    kind, message = fault["type"], str(fault["msg"])
    if kind == WHOLE:
        return message
    name = _name(fault["loc"])
    if kind == "json_invalid":
        return f"the body is not JSON: {fault['ctx']['error']}"
    if kind == "missing":
        return f"{name} is missing; give it"
    shown = _shown(fault.get("input"))
    if kind == "extra_forbidden":
        return f"{name} is {shown}; there is no such field, remove it"
    return f"{name} is {shown}; {_rule(fault)}"


def _rule(fault: Mapping[str, Any]) -> str:
    """Return what the value must be."""
    kind, message, context = fault["type"], str(fault["msg"]), fault.get("ctx", {})
    if kind in KINDS:
        return f"it must be {KINDS[kind]}"
    if kind == "string_pattern_mismatch":
        pattern = context["pattern"]
        return "it must not contain NUL" if r"\x00" in pattern else f"it must match {pattern}"
    if kind == "too_long":
        return f"it may have {context['max_length']} items at most"
    message = message.removeprefix("Value error, ")
    return re.sub(r"^\w+ should", "it must", message)


def _name(places: Sequence[str | int]) -> str:
    """Return the name of a field from where it is, e.g. outcomes[3].reward."""
    name = ""
    for place in places[1:] if places and places[0] in PARTS else places:
        if isinstance(place, int):
            name += f"[{place}]"
        elif place == "[key]":
            name = f"a key of {name.rpartition('.')[0]}"
        else:
            name += f".{place[:60]}" if name else place[:60]
    return name or "the body"


def _shown(value: object) -> str:
    """Return a value in a few words."""
    if isinstance(value, dict | list | tuple):
        one = "an object" if isinstance(value, dict) else "a list"
        return f"{one} with {len(value)} {'item' if len(value) == 1 else 'items'}"
    if isinstance(value, str):
        return brief(value[:100]) if len(value) <= 60 else f"a text of {len(value)} characters"
    if isinstance(value, int) and abs(value) > MOST_DIGITS:
        return "a number of more than thirty digits"
    return brief(value)
