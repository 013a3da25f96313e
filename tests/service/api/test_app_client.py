"""A typed client that is generated from the OpenAPI document, on a running service.

The generator has an environment of its own (`make client-generator`): it needs another Typer.
"""

import importlib
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.support import services
from tests.support.required import leave_out

pytestmark = pytest.mark.slow

PACKAGE = "counsel_client"
GENERATOR = Path(sys.prefix) / "client-generator"
PROGRAM = GENERATOR / "bin" / "openapi-python-client"


class TypedClient:
    """The functions and classes of the generated client, by their names."""

    def __init__(self, client):
        self.client = client
        self.models = importlib.import_module(f"{PACKAGE}.models")

    def function(self, name):
        return importlib.import_module(f"{PACKAGE}.api.default.{name}")

    def call(self, name, expected, *path, **body):
        """Call a function, whose answer must be an object of the expected class."""
        answer = self.function(name).sync(*path, client=self.client, **body)
        assert type(answer) is getattr(self.models, expected), (name, answer)
        return answer

    def new(self, class_, **fields):
        return getattr(self.models, class_).from_dict(fields)


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    if not PROGRAM.exists():
        leave_out("openapi-python-client is not installed: make client-generator")
    folder = tmp_path_factory.mktemp("typed")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        url = stack.enter_context(services.serving(folder / "counsel.db"))
        (folder / "openapi.json").write_text(
            json.dumps(httpx2.get(f"{url}/v1/openapi.json").json()), encoding="utf-8"
        )
        (folder / "settings.json").write_text('{"post_hooks": []}', encoding="utf-8")
        options = ["--path", "openapi.json", "--config", "settings.json", "--meta", "none"]
        subprocess.run(
            [PROGRAM, "generate", *options, "--output-path", PACKAGE, "--fail-on-warning"],
            cwd=folder,
            check=True,
        )
        patch.syspath_prepend(folder)
        # What a generated client imports; last, so that nothing else is taken from there.
        (packages,) = GENERATOR.glob("lib/python*/site-packages")
        patch.setattr(sys, "path", [*sys.path, str(packages)])
        package = importlib.import_module(PACKAGE)
        client = package.Client(base_url=url, raise_on_unexpected_status=True, timeout=120.0)
        yield TypedClient(stack.enter_context(client))


def test_a_generated_client_plays_an_episode_and_reads_the_summary(typed):
    new = typed.new("NewAdviser", name="alerts", source="ward", budget=1.0, hard=True)
    adviser = typed.call("create_adviser", "AdviserOut", body=new)
    person = typed.new("NewEpisode", person="ann")
    episode = typed.call("start_episode", "EpisodeOut", adviser.id, body=person)
    pieces = 0
    for step in range(adviser.horizon):
        situation = typed.new("Situation", step=step, state="deteriorating")
        advice = typed.call("advise", "AdviceOut", episode.id, body=situation)
        pieces += advice.advice is not None
        outcome = {"advice_id": advice.id, "action": "assess", "reward": 0.5}
        report = typed.new("OutcomesIn", outcomes=[outcome])
        assert typed.call("report", "OutcomeReceipt", body=report).taken == 1
    assert pieces == 1
    end = typed.new("EpisodeEnd", terminated=True)
    ended = typed.function("end_episode").sync_detailed(episode.id, client=typed.client, body=end)
    assert ended.status_code == 204
    summary = typed.call("summary", "Summary", adviser.id)
    assert (summary.episodes, summary.decisions) == (1, adviser.horizon)
    assert type(summary.recent[0]) is typed.models.RecordedDecision
    unknown = typed.call("show_adviser", "Problem", "nobody")
    assert unknown.detail == "there is no adviser 'nobody'"


def test_a_generated_client_plays_a_game(typed):
    options = typed.call("list_options", "PlayOptions")
    new = typed.new("NewGame", map=options.maps[0].name, budget=2, player="me")
    game = typed.call("start_game", "GameOut", body=new)
    for _ in range(game.horizon):
        if not game.over:
            action = game.advice.advice or options.moves[0].label
            move = typed.new("MoveIn", step=game.step, action=action)
            game = typed.call("move", "GameOut", game.id, body=move)
    assert game.over
    assert type(game.card) is typed.models.ResultCard
    assert typed.call("show_game", "GameOut", game.id).path == game.path


def test_a_generated_client_receives_a_card_and_accepts_it(typed):
    new = typed.new("NewAdviser", name="alarms", source="ward", always=True)
    adviser = typed.call("create_adviser", "AdviserOut", body=new).id
    listed = typed.call("discover_services", "CdsServices").services
    assert adviser in [service.id for service in listed]
    call = typed.new(
        "CdsCall",
        hook="patient-view",
        hookInstance="d1577c69-dfbe-44ad-ba6d-3e05e953b2ea",
        context={"userId": "Practitioner/ann", "encounterId": "89284"},
        extension={"counsel": {"state": "deteriorating"}},
    )
    (card,) = typed.call("call_service", "CdsAnswer", adviser, body=call).cards
    feedback = {"card": card.uuid, "outcome": "accepted", "outcomeTimestamp": "2027-01-31T10:05Z"}
    feedback |= {"acceptedSuggestions": [{"id": card.suggestions[0].uuid}]}
    body = typed.new("CdsFeedbacks", feedback=[feedback])
    refused = typed.call("give_feedback", "Problem", adviser, body=body)
    assert "outcomeTimestamp" in refused.detail
    feedback["outcomeTimestamp"] = "2027-01-31T10:05:31Z"
    body = typed.new("CdsFeedbacks", feedback=[feedback])
    assert typed.call("give_feedback", "CdsReceipt", adviser, body=body).taken == 1
