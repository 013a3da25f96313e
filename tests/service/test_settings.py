"""The settings of a service: defaults, the environment, and what is refused."""

import dataclasses
import re

import pytest

from counsel import CounselError
from counsel.service.settings import ServiceSettings, misspelt, variable_of
from tests.support.paths import ROOT


def test_an_option_goes_before_the_environment_and_that_before_the_default():
    variables = {"COUNSEL_REQUEST_SECONDS": "7", "COUNSEL_QUEUE": "7", "COUNSEL_ACCESS_LOG": "on"}
    settings = ServiceSettings.from_environment(variables)
    assert (settings.request_seconds, settings.queue, settings.access_log) == (7.0, 7, True)
    assert settings.idle_seconds == ServiceSettings().idle_seconds
    assert settings.with_options(queue=9, request_seconds=None).queue == 9
    assert settings.with_options(queue=9, request_seconds=None).request_seconds == 7.0


@pytest.mark.parametrize(
    ("variables", "what"),
    [
        ({"COUNSEL_QUEUE": "many"}, "COUNSEL_QUEUE is 'many'; it must be a whole number"),
        ({"COUNSEL_QUEUE": "1.5"}, "COUNSEL_QUEUE is '1.5'; it must be a whole number"),
        ({"COUNSEL_IDLE_SECONDS": "soon"}, "COUNSEL_IDLE_SECONDS is 'soon'; it must be a number"),
        ({"COUNSEL_IDLE_SECONDS": "nan"}, "idle_seconds is nan; it must be above 0"),
        ({"COUNSEL_IDLE_SECONDS": "-1"}, "idle_seconds is -1.0; it must be above 0"),
        (
            {"COUNSEL_REQUEST_SECONDS": "2"},
            "statement_seconds is 4 and request_seconds is 2; statement_seconds must be below "
            "request_seconds: change COUNSEL_STATEMENT_SECONDS or COUNSEL_REQUEST_SECONDS",
        ),
        ({"COUNSEL_STATEMENT_SECONDS": "3"}, "lock_seconds is 3 and statement_seconds is 3"),
        ({"COUNSEL_LOCK_SECONDS": "2"}, "transaction_seconds is 2 and lock_seconds is 2"),
        ({"COUNSEL_LOCK_SECONDS": "0.0001"}, r"lock_seconds is 0\.0001; it must be 0\.001 or more"),
        ({"COUNSEL_ACCESS_LOG": "maybe"}, "COUNSEL_ACCESS_LOG is 'maybe'; write 1 or 0"),
        ({"COUNSEL_LOG_LEVEL": "loud"}, "log_level is 'loud'; it must be one of debug, info"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_a_sentence(variables, what):
    with pytest.raises(CounselError, match=what):
        ServiceSettings.from_environment(variables)


def test_a_misspelt_variable_is_named_with_the_setting_that_was_meant():
    # It was ignored in silence, so that a limit held that nobody had chosen.
    variables = {"COUNSEL_REQEST_SECONDS": "3", "COUNSEL_MODEL_BYTE": "1", "COUNSEL_MODELS": "1"}
    others = ("COUNSEL_DB", "COUNSEL_DB_FILE", "COUNSEL_SERVICE", "COUNSEL_DEBUG", "COUNSEL_PORT",
              "COUNSEL_HOST", "COUNSEL_WORKERS", "COUNSEL_WAIT", "COUNSEL_PORT_8000_TCP",
              "COUNSEL_SERVICE_HOST", "COUNSEL_PASSWORD_FILE", "REQUEST_SECONDS")  # fmt: skip
    assert misspelt(variables | dict.fromkeys(others, "1")) == [
        "COUNSEL_MODEL_BYTE is no setting; is it COUNSEL_MODEL_BYTES?",
        "COUNSEL_REQEST_SECONDS is no setting; is it COUNSEL_REQUEST_SECONDS?",
    ]


def test_the_page_has_every_setting_with_its_variable_and_default():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    section = page.split("\n## Service\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\S+) \| \S.* \|$", section, re.MULTILINE)
    fields = dataclasses.fields(ServiceSettings)
    assert [(name, variable) for name, variable, _ in rows] == [
        (field.name, variable_of(field.name)) for field in fields
    ]
    variables = {variable: text.replace("–", "") for _, variable, text in rows}
    written = ServiceSettings.from_environment(variables)
    assert written == ServiceSettings()
    assert len(rows) == len(fields)
