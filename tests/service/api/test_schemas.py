"""The service against its own OpenAPI document: whatever that allows is answered as it says."""

import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings

from counsel.service.api.schemas import NewAdviser
from counsel.service.client import Client
from tests.support import services
from tests.support.later import Later
from tests.support.routes import MATRIX

schemathesis = Later("schemathesis")
checks = Later("schemathesis.specs.openapi.checks")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """The address of a service, and ids of what there is."""
    with services.serving(tmp_path_factory.mktemp("openapi") / "counsel.db") as address:
        with Client(address) as client:
            adviser = client.create_adviser("alerts", "ward", budget=1.0)["id"]
            episode = client.start(adviser, "ann")
        yield address, {"adviser": adviser, "episode": episode, "person": "ann"}


@pytest.fixture(scope="module")
def document(opened):
    address, _ = opened
    return schemathesis.openapi.from_url(f"{address}/v1/openapi.json")


@pytest.mark.parametrize(("verb", "path"), [(verb, path) for verb, path, _ in MATRIX])
@pytest.mark.parametrize("ids", ["any", "of what there is"])
def test_nothing_that_the_document_allows_is_answered_otherwise(opened, document, verb, path, ids):
    _, known = opened
    operation = document[path][verb]

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def answered(case):
        if ids != "any" and verb != "DELETE":
            for name in set(case.path_parameters or {}) & set(known):
                case.path_parameters[name] = known[name]
        answer = case.call()
        # Labels, sources and maps are any text to the document, and some of it is refused.
        refused = [checks.positive_data_acceptance] if answer.status_code == 400 else []
        case.validate_response(answer, excluded_checks=refused)

    answered()


def test_a_state_with_nul_in_must_say_is_refused_by_the_document_too():
    asked = {"name": "alerts", "source": "ward"}
    valid = jsonschema_rs.validator_for(NewAdviser.model_json_schema()).is_valid
    assert valid(asked | {"must_say": {"critical": "call doctor"}})
    assert not valid(asked | {"must_say": {"critical\x00": "call doctor"}})


@pytest.mark.parametrize("examples", [6, pytest.param(30, marks=pytest.mark.long)])
def test_schemathesis_finds_nothing(address, examples):
    """All its phases on a running service: undeclared methods, missing fields, chains of calls."""
    program = Path(sys.executable).with_name("st")
    command = [program, "run", f"{address}/v1/openapi.json", "--no-color"]
    command += ["--max-examples", str(examples)]
    done = subprocess.run(
        [*command, "--exclude-checks", "positive_data_acceptance", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"Tested: {len(MATRIX)}" in done.stdout
