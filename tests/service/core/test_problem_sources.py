"""Problems by name or id: advisers with the same source share one, for as long as it is in use."""

import gc
import weakref

import pytest

from counsel import CounselError
from counsel.model.files import save
from counsel.service.core import problem_sources
from counsel.service.core.problem_sources import ProblemSources, add_model
from counsel.service.core.settings import AdviserSettings
from counsel.service.db.api_keys import KeyHolder
from counsel.worlds import make
from tests.support.services import open_desk


@pytest.fixture
def desk(tmp_path):
    with open_desk(f"sqlite:///{tmp_path / 'counsel.db'}") as found:
        yield found


@pytest.fixture
def model(desk, tmp_path):
    save(make("ward"), tmp_path / "model.npz")
    content = (tmp_path / "model.npz").read_bytes()
    added = desk.committer.submit(lambda c: add_model(c, KeyHolder(1, "admin"), "ward", content))
    return added.result()


def an_adviser(desk, source):
    return desk.create(1, "alerts", AdviserSettings(source=source, budget=1.0))


def test_advisers_on_one_model_share_it_and_read_it_once(desk, model, monkeypatch):
    # Found by an audit: every adviser that was looked at kept a copy of its model for good.
    plain, contents = problem_sources.read_model, []

    def read(content):
        contents.append(content)
        return plain(content)

    monkeypatch.setattr(problem_sources, "read_model", read)
    first, second = (desk.live(1, an_adviser(desk, model)) for _ in range(2))
    assert len(contents) == 1
    assert first.mdp is second.mdp
    assert first.states is second.states
    assert first.state_names is second.state_names


@pytest.mark.slow
def test_a_model_that_nobody_uses_any_more_is_not_kept(desk, model):
    problem = weakref.ref(desk.live(1, an_adviser(desk, model)).problem)
    assert problem() is not None
    for adviser in desk.in_use():
        desk.forget_adviser(adviser)
    gc.collect()
    assert problem() is None


def test_a_shared_model_stays_its_tenants(desk, model):
    problem = desk.problems(1, model)
    with pytest.raises(CounselError, match="give the id of an uploaded model"):
        desk.problems(2, model)
    assert desk.problems(1, model) is problem


def test_a_world_is_built_once_for_all_tenants(desk):
    first = desk.problems(1, "ward")
    assert desk.problems(2, "ward") is first
    assert ProblemSources(desk.engine, {})(1, "ward") is not first
