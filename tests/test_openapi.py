"""The service against its own OpenAPI document: whatever that allows is answered as it says."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from counsel.service.app import make_app
from counsel.service.desk import Desk
from counsel.service.keys import tenant_of
from counsel.service.live import Settings
from counsel.service.sources import Sources
from counsel.service.store import open_engine, writing
from tests.test_service import MATRIX


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    engine = open_engine(str(tmp_path_factory.mktemp("openapi") / "counsel.db"))
    with writing(engine) as connection:
        tenant = tenant_of(connection, "local")
    desk = Desk(engine, Sources(engine), np.random.default_rng(0))
    adviser = desk.create(tenant, "alerts", Settings("ward", budget=1.0))
    episode = desk.start(tenant, adviser, "ann").id
    known = {"adviser": adviser, "episode": episode, "person": "ann"}
    yield make_app(desk, tenant=tenant), known
    desk.close()
    engine.dispose()


@pytest.fixture(scope="module")
def document(opened):
    app, _ = opened
    return schemathesis.openapi.from_asgi("/v1/openapi.json", app)


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
        refused = [positive_data_acceptance] if answer.status_code == 400 else []
        case.validate_response(answer, excluded_checks=refused)

    answered()


def test_schemathesis_finds_nothing(address):
    """All its phases on a running service: undeclared methods, missing fields, chains of calls."""
    program = Path(sys.executable).with_name("st")
    command = [program, "run", f"{address}/v1/openapi.json", "--max-examples", "15", "--no-color"]
    done = subprocess.run(
        [*command, "--exclude-checks", "positive_data_acceptance", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"Tested: {len(MATRIX)}" in done.stdout
