"""Faults of fields in sentences, through the models of requests."""

import pytest
from pydantic import BaseModel, ValidationError

from counsel.service.api import schemas
from counsel.service.core.settings import AdviserSettings
from counsel.service.field_faults import sentence_of


def told(model: type[BaseModel], text: str) -> str:
    with pytest.raises(ValidationError) as raised:
        model.model_validate_json(text)
    return sentence_of(raised.value.errors()[0])


OUTCOME = '{"outcomes": [{"advice_id": "a", "action": "b"}, {"advice_id": "a", "action": "b", %s}]}'
MANY = '{"outcomes": [' + ", ".join(['{"advice_id": "a", "action": "b"}'] * 1001) + "]}"


@pytest.mark.parametrize(
    ("model", "text", "sentence"),
    [
        (schemas.Situation, '{"state": "a"}', "step is missing; give it"),
        (schemas.Situation, '{"step": "1"}', "step is '1'; it must be a whole number"),
        (schemas.Situation, '{"step": 1.5}', "step is 1.5; it must be a whole number"),
        (schemas.Situation, '{"step": -1}', "step is -1; it must be greater than or equal to 0"),
        (
            schemas.Situation,
            '{"step": 1%s}' % ("0" * 400),
            "step is a number of more than thirty digits; it must be less than or equal to 1000000",
        ),
        (schemas.Situation, '{"step": 1, "state": 3}', "state is 3; it must be a text"),
        (
            schemas.Situation,
            '{"step": 1, "state": "%s"}' % ("x" * 201),
            "state is a text of 201 characters; it must have at most 200 characters",
        ),
        (
            schemas.Situation,
            '{"step": 1, "state": "\\u0000"}',
            r"state is '\x00'; it must not contain NUL",
        ),
        (
            schemas.Situation,
            '{"step": 1, "state": "a", "x": {"y": 1}}',
            "x is an object with 1 item; there is no such field, remove it",
        ),
        (schemas.Situation, "[1, 2]", "the body is a list with 2 items; it must be an object"),
        (
            schemas.Situation,
            '{"step": nul}',
            "the body is not JSON: expected ident at line 1 column 13",
        ),
        (
            schemas.OutcomesIn,
            OUTCOME % '"reward": true',
            "outcomes[1].reward is True; it must be a number",
        ),
        (
            schemas.OutcomesIn,
            OUTCOME % '"reward": "2"',
            "outcomes[1].reward is '2'; it must be a number",
        ),
        (
            schemas.OutcomesIn,
            OUTCOME % '"seen": "perhaps"',
            "outcomes[1].seen is 'perhaps'; it must be true or false",
        ),
        (
            schemas.OutcomesIn,
            '{"outcomes": 1}',
            "outcomes is 1; it must be a list",
        ),
        (
            schemas.OutcomesIn,
            MANY,
            "outcomes is a list with 1001 items; it may have 1000 items at most",
        ),
        (
            schemas.NewAdviser,
            '{"name": "a", "source": "b", "mode": null}',
            "mode is None; it must be 'off', 'shadow' or 'live'",
        ),
        (
            schemas.NewAdviser,
            '{"name": "a", "source": "b", "must_say": {"": "x"}}',
            "a key of must_say is ''; it must have at least 1 character",
        ),
        (
            schemas.NewAdviser,
            '{"name": "a", "source": "b", "schedule": {"s": {"t": 2}}}',
            "schedule.s.t is 2; it must be less than or equal to 1",
        ),
        (
            schemas.NewAdviser,
            '{"name": "a", "source": "b", "shared_limit": {"pieces": 1, "per": "month"}}',
            "shared_limit.per is 'month'; it must be second, minute, hour, day, week or a whole "
            "number of seconds from 1 to 31536000",
        ),
    ],
)
def test_a_fault_is_a_sentence_that_names_field_and_value(model, text, sentence):
    assert told(model, text) == sentence


@pytest.mark.parametrize("value", ["true", '"1"', "[]", "1e999"])
@pytest.mark.parametrize(
    ("model", "text"),
    [
        (AdviserSettings, '{"source": "a", "penalty": %s}'),
        (AdviserSettings, '{"source": "a", "budget": %s}'),
        (AdviserSettings, '{"source": "a", "holdout": %s}'),
        (AdviserSettings, '{"source": "a", "explore": %s}'),
        (AdviserSettings, '{"source": "a", "schedule": {"s": {"t": %s}}}'),
        (AdviserSettings, '{"source": "a", "shared_limit": {"pieces": %s, "per": "day"}}'),
        (AdviserSettings, '{"source": "a", "shared_limit": {"pieces": 1, "per": %s}}'),
        (schemas.OutcomesIn, '{"outcomes": [{"advice_id": "a", "action": "b", "reward": %s}]}'),
        (schemas.OutcomesIn, '{"outcomes": [{"advice_id": "a", "action": "b", "version": %s}]}'),
        (
            schemas.ReportedDecisions,
            '{"decisions": [{"step": 0, "state": "s", "advice": null, "at": %s}]}',
        ),
        (schemas.Situation, '{"step": %s, "state": "s"}'),
        (schemas.NewGame, '{"map": "m", "player": "p", "budget": %s}'),
        (schemas.NewGame, '{"map": "m", "player": "p", "penalty": %s}'),
    ],
)
def test_a_number_is_neither_true_nor_a_text(model, text, value):
    model.model_validate_json(text % 1)
    model.model_validate_json(text % "1.0")
    told(model, text % value)
