"""Nothing public is undocumented: names, commands and their options, routes, settings."""

import dataclasses
import importlib
import inspect
import re
import sys

import pytest
from numpydoc.validate import validate

import counsel
import counsel.worlds
from counsel.runs.spec import Spec
from counsel.service.core.settings import AdviserSettings
from tests.support import pages
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import reference_pages

DOCS = ROOT / "docs"
MODULES = (
    "counsel",
    "counsel.baselines",
    "counsel.drawing",
    "counsel.learning",
    "counsel.planning",
    "counsel.simulate",
    "counsel.worlds",
    "counsel.logs",
    "counsel.testing",
    "counsel.service.client",
    "counsel.service.fallback",
)
PUBLIC = sorted(
    {
        f"{module}.{name}"
        for module in MODULES
        for name in importlib.import_module(module).__all__
        if (module == "counsel" or name not in counsel.__all__)
        and not inspect.ismodule(getattr(importlib.import_module(module), name))
    }
)
FAULTS = {
    "GL08": "has no docstring",
    "PR01": "does not tell a parameter",
    "PR02": "tells a parameter it does not have",
    "PR03": "tells its parameters in another order",
    "RT01": "does not tell what it returns",
    "EX01": "has no example",
}


def found(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def faults(name, codes):
    return [
        f"{name} {FAULTS[code]}: {why}" for code, why in validate(name)["errors"] if code in codes
    ]


def inherits(owner, member):
    """Whether a member without a docstring overrides one with the same parameters that has one."""
    own = vars(owner)[member]
    if own.__doc__:
        return False
    parents = [getattr(parent, member, None) for parent in owner.__mro__[1:]]
    parent = next((one for one in parents if one is not None and one.__doc__), None)
    if parent is None:
        return False
    if isinstance(own, property):
        return True
    return list(inspect.signature(own).parameters) == list(inspect.signature(parent).parameters)


class Parent:
    def told(self, state):
        """Return something."""

    def silent(self):
        pass


class Child(Parent):
    def told(self, state):
        pass

    def silent(self):
        pass


class OddChild(Parent):
    def told(self, state, step):
        pass


def test_a_method_needs_no_text_of_its_own_where_it_overrides_one_that_has_it():
    assert inherits(Child, "told")
    assert not inherits(Child, "silent")
    assert not inherits(OddChild, "told")
    assert not inherits(Parent, "told")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_tells_what_it_takes_and_returns_with_an_example(name):
    thing = found(name)
    # What is returned, not built, by those who use it tells its fields as attributes.
    returned = "Attributes\n" in thing.__doc__ and "Parameters\n" not in thing.__doc__
    returned = returned or getattr(thing, "_is_protocol", False)  # a protocol is never built
    told = faults(name, FAULTS.keys() - ({"PR01"} if returned else set()))
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            documented = callable(value) or isinstance(value, property)
            if documented and not member.startswith("_") and not inherits(thing, member):
                told += faults(f"{name}.{member}", FAULTS.keys() - {"EX01", "RT01"})
    if dataclasses.is_dataclass(thing):
        fields = [field.name for field in dataclasses.fields(thing) if field.name[0] != "_"]
        told += [f"{name} does not tell {one}" for one in fields if one not in thing.__doc__]
    assert told == []
    assert ">>> " in thing.__doc__


def test_every_public_name_is_on_one_page_of_the_reference():
    listed = [
        name
        for path in (DOCS / "reference" / "api").glob("*.md")
        for name in re.findall(r"^\.\. auto\w+:: (\S+)", path.read_text(), re.MULTILINE)
    ]
    assert sorted(listed) == PUBLIC


def test_every_command_and_option_tells_what_it_does():
    silent = []
    for name, command in reference_pages.commands().items():
        if not command.help:
            silent.append(name)
        silent += [f"{name} {one.name}" for one in command.params if not one.help]
    assert silent == []


def test_every_command_is_shown_on_a_page_and_told_in_the_reference():
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages.written())
    made = reference_pages.cli_page()
    for name in reference_pages.commands():
        assert f"## {name}\n" in made
        assert re.search(rf"{name}(?![\w-])", text), f"no page shows {name}"


def test_every_route_field_and_parameter_is_told():
    document = reference_pages.document()
    page = reference_pages.http_page(document)
    silent = []
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert f"## {method.upper()} {path}\n" in page
            if not route.get("description"):
                silent.append(f"{method} {path}")
            named = route.get("parameters", [])
            silent += [f"{path} {one['name']}" for one in named if not one.get("description")]
    for name, schema in document["components"]["schemas"].items():
        for field, kind in schema.get("properties", {}).items():
            if not kind.get("description"):
                silent.append(f"{name}.{field}")
    assert silent == []


def test_every_setting_is_told():
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    variables = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'"(COUNSEL_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert variables
    fields = set(AdviserSettings.model_fields) | {one.name for one in dataclasses.fields(Spec)}
    assert sorted(one for one in variables | fields if f"`{one}`" not in page) == []


def test_every_constant_on_the_page_of_settings_has_its_value_in_its_module():
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| (`[A-Z].*?`) \(`(\w+)`\) \| ([\d,. ]+) \|", page, re.M)
    assert len(named) >= 20
    for names, module, values in named:
        (path,) = (ROOT / "src").rglob(f"{module}.py")
        dotted = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        constants = vars(importlib.import_module(dotted))
        expected = [float(value.replace(",", "")) for value in values.split(", ")]
        assert [constants[name] for name in re.findall(r"[A-Z_]+", names)] == expected, names


def test_every_override_of_a_world_is_told():
    page = (DOCS / "reference" / "worlds.md").read_text(encoding="utf-8")
    for name, world in counsel.worlds.list_worlds().items():
        assert f"`{name}`" in page
        overrides = inspect.signature(world.builder()).parameters
        assert [one for one in overrides if f"`{one}`" not in page] == []
