"""The OpenAPI document: every answer is typed, and what version 1 promised is kept."""

import copy
import json
import sys

import pytest

from tests.support.api_policy import broken_promises
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import reference_pages

GOLDEN = json.loads((ROOT / "tests" / "golden" / "openapi.json").read_text(encoding="utf-8"))

FREE = {
    "AdviserSettings.schedule": "labels are the caller's",
    "AuditRow.details": "each action has its own",
    "AdviserSettings.must_say": "labels are the caller's",
}
"""Fields of answers that may hold any names, and why."""


@pytest.fixture(scope="module")
def document():
    return reference_pages.document()


def answers(document):
    """Yield every JSON answer of a success: its place and its content."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for code, answer in operation["responses"].items():
                content = answer.get("content", {})
                if code in ("200", "201") and "application/json" in content:
                    yield f"{method.upper()} {path} {code}", content["application/json"]


def untyped(place, schema, schemas, visited):
    """Yield the places below a schema at which a client cannot know what there is."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in visited:
            visited.add(name)
            yield from untyped(name, schemas[name], schemas, visited)
    elif "anyOf" in schema:
        for option in schema["anyOf"]:
            yield from untyped(place, option, schemas, visited)
    elif "type" not in schema and "enum" not in schema and "const" not in schema:
        yield place
    elif schema.get("type") == "array":
        yield from untyped(f"{place}[]", schema.get("items", {}), schemas, visited)
    elif schema.get("type") == "object":
        if not schema.get("properties"):
            yield place
        for name, field in schema.get("properties", {}).items():
            yield from untyped(f"{place}.{name}", field, schemas, visited)


def test_every_json_answer_is_typed(document):
    schemas, visited, free = document["components"]["schemas"], set(), set()
    places = dict(answers(document))
    assert len(places) > 15
    for place, content in places.items():
        free |= set(untyped(place, content.get("schema", {}), schemas, visited))
    assert free == set(FREE)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"title": "Response"},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "array"},
        {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "object"}]}},
        {"type": "object", "properties": {"card": {}}},
    ],
)
def test_an_answer_without_a_type_is_found(schema):
    assert list(untyped("GET /", schema, {}, set()))


def test_functions_of_generated_clients_have_names_of_their_own(document):
    names = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name == name.lower() for name in names)


def test_what_version_1_promised_is_kept(document):
    assert broken_promises(GOLDEN, document) == []


def schema_of(document, name):
    return document["components"]["schemas"][name]


def test_what_is_added_breaks_no_promise():
    after = copy.deepcopy(GOLDEN)
    after["paths"]["/v1/more"] = {"get": {}}
    schema_of(after, "AdviceOut")["properties"]["more"] = {"type": "string"}
    schema_of(after, "AdviceOut")["required"].append("more")
    schema_of(after, "Situation")["properties"]["more"] = {"type": "string"}
    schema_of(after, "AdviserChange")["properties"]["mode"]["enum"].append("rest")
    schema_of(after, "Situation")["properties"]["step"]["maximum"] *= 2
    after["paths"]["/v1/advisers"]["get"]["responses"]["410"] = {"description": "Gone"}
    assert broken_promises(GOLDEN, after) == []


def remove_path(after):
    del after["paths"]["/v1/outcomes"]


def remove_method(after):
    del after["paths"]["/v1/advisers"]["get"]


def remove_field_of_answer(after):
    del schema_of(after, "AdviceOut")["properties"]["reason"]


def remove_inner_field_of_answer(after):
    del schema_of(after, "Reason")["properties"]["lift"]


def make_field_of_answer_optional(after):
    schema_of(after, "AdviceOut")["required"].remove("probability")


def give_field_of_answer_another_type(after):
    schema_of(after, "EpisodeOut")["properties"]["id"]["type"] = "integer"


def let_field_of_answer_be_null(after):
    field = schema_of(after, "AdviceOut")["properties"]["id"]
    schema_of(after, "AdviceOut")["properties"]["id"] = {"anyOf": [field, {"type": "null"}]}


def add_value_to_answer(after):
    schema_of(after, "Worth")["properties"]["how"]["enum"].append("guessed")


def add_required_field_to_request(after):
    schema_of(after, "Situation")["properties"]["ward"] = {"type": "string"}
    schema_of(after, "Situation")["required"].append("ward")


def require_field_of_request(after):
    schema_of(after, "OutcomeIn")["required"].append("reward")


def remove_field_of_request(after):
    del schema_of(after, "OutcomeIn")["properties"]["comment"]


def remove_value_of_request(after):
    schema_of(after, "AdviserChange")["properties"]["mode"]["enum"].remove("shadow")


def tighten_bound_of_request(after):
    schema_of(after, "OutcomesIn")["properties"]["outcomes"]["maxItems"] = 10


def remove_parameter(after):
    parameters = after["paths"]["/v1/people"]["get"]["parameters"]
    parameters[:] = [parameter for parameter in parameters if parameter["name"] != "after"]


def require_parameter(after):
    (parameter,) = (
        parameter
        for parameter in after["paths"]["/v1/people"]["get"]["parameters"]
        if parameter["name"] == "after"
    )
    parameter["required"] = True


def change_status(after):
    responses = after["paths"]["/v1/advisers"]["post"]["responses"]
    responses["200"] = responses.pop("201")


def change_kind_of_answer(after):
    content = after["paths"]["/v1/people"]["get"]["responses"]["200"]["content"]
    content["text/json"] = content.pop("application/json")


def ask_for_another_role(after):
    after["paths"]["/v1/outcomes"]["post"]["security"] = [{"key": ["admin"]}]


def rename_function_of_clients(after):
    after["paths"]["/v1/outcomes"]["post"]["operationId"] = "send"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (remove_path, "POST /v1/outcomes was removed"),
        (remove_method, "GET /v1/advisers was removed"),
        (
            remove_field_of_answer,
            "POST /v1/episodes/{episode}/advice, answer 200, field reason was removed",
        ),
        (
            remove_inner_field_of_answer,
            "POST /v1/episodes/{episode}/advice, answer 200, field reason, field lift was removed",
        ),
        (
            make_field_of_answer_optional,
            "POST /v1/episodes/{episode}/advice, answer 200, field probability may be missing now",
        ),
        (
            give_field_of_answer_another_type,
            "POST /v1/advisers/{adviser}/episodes, answer 201, field id: it may be integer now",
        ),
        (
            let_field_of_answer_be_null,
            "POST /v1/episodes/{episode}/advice, answer 200, field id: it may be null now",
        ),
        (
            add_value_to_answer,
            "GET /v1/advisers/{adviser}/summary, answer 200, field worth, field how: it may be "
            "'guessed' now",
        ),
        (
            add_required_field_to_request,
            "POST /v1/episodes/{episode}/advice, request, field ward is required now",
        ),
        (
            require_field_of_request,
            "POST /v1/outcomes, request, field outcomes, items, field reward is required now",
        ),
        (
            remove_field_of_request,
            "POST /v1/outcomes, request, field outcomes, items, field comment was removed",
        ),
        (
            remove_value_of_request,
            "PATCH /v1/advisers/{adviser}, request, field mode: 'shadow' is no longer accepted",
        ),
        (
            tighten_bound_of_request,
            "POST /v1/outcomes, request, field outcomes: maxItems is 10 now",
        ),
        (remove_parameter, "GET /v1/people, parameter after was removed"),
        (require_parameter, "GET /v1/people, parameter after is required now"),
        (change_status, "POST /v1/advisers: it no longer answers with 201"),
        (
            change_kind_of_answer,
            "GET /v1/people: the answer 200 is no longer application/json",
        ),
        (ask_for_another_role, "POST /v1/outcomes: it needs another role"),
        (
            rename_function_of_clients,
            "POST /v1/outcomes: operationId was report, now it is send",
        ),
    ],
)
def test_a_broken_promise_is_named(change, sentence):
    after = copy.deepcopy(GOLDEN)
    change(after)
    assert broken_promises(GOLDEN, after) == [sentence]
