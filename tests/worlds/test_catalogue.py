"""The catalogue: ours by name, and the worlds of packages that are really installed."""

import importlib
import sys

import pytest

from counsel import AdviceProblem, CounselError
from counsel.worlds import Boltzmann, GridMap, World, list_worlds, make, make_flappy_bird

OURS = [
    "flappy-bird/greedy",
    "flappy-bird/safe",
    "flappy-bird/tiring",
    "flappy-bird-budget/greedy",
    "car-driving/myopic",
    "night-shift",
    "call-centre",
    "call-centre/working",
    "call-centre/tiring",
    "ward",
    "ward/tiring",
    "machine-repair",
    "inventory",
]
FLIGHT = {"map", "human", "adherence", "groups", "horizon", "memory", "fading"}
OVERRIDES = {
    "flappy-bird/greedy": FLIGHT,
    "flappy-bird/safe": FLIGHT,
    "flappy-bird/tiring": FLIGHT,
    "flappy-bird-budget/greedy": FLIGHT,
    "car-driving/myopic": {"human", "adherence", "groups", "horizon", "chances"},
    "night-shift": {"random_rewards"},
    "call-centre": {"mother", "horizon", "memory", "fading"},
    "call-centre/working": {"mother", "horizon", "memory", "fading"},
    "call-centre/tiring": {"mother", "horizon", "memory", "fading"},
    "ward": {"horizon", "memory", "fading"},
    "ward/tiring": {"horizon", "memory", "fading"},
    "machine-repair": {"conditions", "discount", "lift"},
    "inventory": {"shelves", "demand", "discount", "lift"},
}

WARD = '''
"""A package of somebody else's."""

import numpy as np

import counsel


def night(*, beds=2, adherence=0.5):
    """A ward at night, with some beds.

    More that nobody lists.
    """
    stay = np.repeat(np.arange(beds)[:, None], 2, axis=1)
    mdp = counsel.MDP(stay, np.ones((beds, 2)), horizon=3)
    return counsel.AdviceProblem(mdp, counsel.Human(np.full((beds, 2), 0.5), adherence))


def bare():
    return night()


def anything(**settings):
    """Takes whatever it is given."""
    return night(beds=settings.get("beds", 4))
'''


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return what installs a package: its module and its metadata in a folder on the path."""
    before = set(sys.modules)

    def install_one(name, module, **points):
        folder = tmp_path / name
        meta = folder / f"{name}-1.0.dist-info"
        meta.mkdir(parents=True)
        if module is not None:
            (folder / f"{name}.py").write_text(module)
        (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{world} = {value}" for world, value in points["worlds"].items()]
        (meta / "entry_points.txt").write_text("\n".join(["[counsel.worlds]", *lines, ""]))
        monkeypatch.syspath_prepend(folder)

    yield install_one
    for name in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]
    importlib.invalidate_caches()


def one_sentence(fault):
    """Hold an error to one line that says something."""
    text = str(fault.value)
    assert 10 < len(text) < 400
    assert "\n" not in text
    return text


# -------------------------------------------------------------------------------------- ours


def test_ours_are_listed_in_order_and_nothing_else_is():
    assert list(list_worlds()) == OURS


@pytest.mark.parametrize("name", OURS)
def test_each_world_has_a_name_a_summary_and_a_package(name):
    world = list_worlds()[name]
    assert isinstance(world, World)
    assert world.name == name
    assert world.package == "counsel"
    assert len(world.summary) > 20
    assert world.summary == world.summary.strip()
    assert "\n" not in world.summary


@pytest.mark.parametrize("name", OURS)
def test_each_world_can_be_built(name):
    problem = make(name)
    assert isinstance(problem, AdviceProblem)
    horizons = {"flappy-bird-budget": 8, "night-shift": 12, "ward": 6, "car-driving": 10}
    horizons["call-centre"] = 26
    discounts = {"machine-repair": 0.95, "inventory": 0.98}
    assert problem.discount == discounts.get(name)
    if problem.discount is None:
        assert problem.horizon == horizons.get(name.partition("/")[0], 20)


def test_the_catalogue_is_the_callers_own():
    list_worlds().clear()
    assert list(list_worlds()) == OURS


def test_every_override_reaches_the_problem():
    grid = GridMap.parse(".*.\n..*\n.#.")
    groups = [0, 1, 2]
    told = {"map": grid, "human": Boltzmann(1.0), "adherence": 0.25, "groups": groups, "horizon": 2}
    made, alike = make("flappy-bird/safe", **told), make_flappy_bird(**told)
    assert (made.n_states, made.horizon) == (10, 2)
    assert (made.adherence == 0.25).all()
    assert (made.policy == alike.policy).all()
    assert made.human.groups[0, 0].tolist() == groups
    car = make("car-driving/myopic", horizon=3, adherence="low", chances=[1.0, 0.0, 0.0])
    assert car.horizon == 3
    assert (car.adherence == 0.4).all()
    assert (car.mdp.start > 0.0).sum() == 1  # with every cell empty there is one road


def test_what_an_override_may_not_be_is_said_by_the_world():
    with pytest.raises(CounselError, match="adherence"):
        make("flappy-bird/greedy", adherence=1.5)
    with pytest.raises(CounselError, match="horizon"):
        make("car-driving/myopic", horizon=0)


@pytest.mark.parametrize("name", ["flappy-bird", "", "Flappy-Bird/Greedy", "night shift", None, 3])
def test_an_unknown_world_is_answered_with_all_there_are(name):
    with pytest.raises(CounselError) as fault:
        make(name)
    told = one_sentence(fault)
    assert repr(name) in told
    for ours in OURS:
        assert ours in told


@pytest.mark.parametrize("name", OURS)
def test_an_unknown_override_is_answered_with_all_there_are(name):
    with pytest.raises(CounselError) as fault:
        make(name, adherance=0.5)  # codespell:ignore adherance
    told = one_sentence(fault)
    assert name in told
    assert "'adherance'" in told
    listed = told.partition(" takes ")[2].partition(";")[0]
    assert set(listed.split(", ")) == OVERRIDES[name]


# ------------------------------------------------------------------- those of other packages


def test_an_installed_world_is_listed_built_and_overridden(install):
    install("wards", WARD, worlds={"ward/night": "wards:night", "ward/any": "wards:anything"})
    assert list(list_worlds())[: len(OURS)] == OURS
    assert set(list_worlds()) == {*OURS, "ward/night", "ward/any"}
    world = list_worlds()["ward/night"]
    assert (world.name, world.package) == ("ward/night", "wards")
    assert world.summary == "A ward at night, with some beds."
    assert make("ward/night").n_states == 2
    larger = make("ward/night", beds=5, adherence=[0.1, 0.9])
    assert larger.n_states == 5
    assert larger.adherence[0, 0].tolist() == [0.1, 0.9]
    assert make("ward/any", beds=3, whatever="goes").n_states == 3


def test_its_unknown_override_is_answered_with_its_own(install):
    install("wards", WARD, worlds={"ward/night": "wards:night", "ward/bare": "wards:bare"})
    with pytest.raises(CounselError) as fault:
        make("ward/night", bed=5)
    assert "beds, adherence" in one_sentence(fault)
    with pytest.raises(CounselError) as fault:
        make("ward/bare", beds=5)
    assert "no overrides" in one_sentence(fault)


def test_what_its_builder_refuses_is_said_as_it_says_it(install):
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    with pytest.raises(CounselError, match="adherence"):
        make("ward/night", adherence=1.5)


def test_its_name_is_offered_where_another_is_unknown(install):
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    with pytest.raises(CounselError, match="ward/night"):
        make("ward/day")


def test_a_world_without_a_docstring_has_an_empty_summary(install):
    install("wards", WARD, worlds={"ward/bare": "wards:bare"})
    assert list_worlds()["ward/bare"].summary == ""
    assert make("ward/bare").n_states == 2


def test_a_package_is_imported_when_its_world_is_asked_for_and_not_before(install):
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    world = list_worlds()["ward/night"]
    assert (world.name, world.package) == ("ward/night", "wards")
    assert "ward/night" in repr(world)
    make("night-shift")
    with pytest.raises(CounselError):
        make("no-such-world")
    assert "wards" not in sys.modules
    make("ward/night")
    assert "wards" in sys.modules


def test_a_package_is_imported_when_its_summary_is_read(install):
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    world = list_worlds()["ward/night"]
    assert "wards" not in sys.modules
    assert world.summary
    assert "wards" in sys.modules


def test_ours_cannot_be_replaced(install):
    install("wards", WARD, worlds={"flappy-bird/greedy": "wards:night", "wards": "wards:night"})
    assert list(list_worlds()) == [*OURS, "wards"]
    assert list_worlds()["flappy-bird/greedy"].package == "counsel"
    assert make("flappy-bird/greedy").n_states == 141
    assert "wards" not in sys.modules


def test_of_two_packages_with_one_name_one_stays(install):
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    install("clinics", WARD, worlds={"ward/night": "clinics:anything"})
    world = list_worlds()["ward/night"]
    assert make("ward/night").n_states == {"wards": 2, "clinics": 4}[world.package]
    assert list_worlds()["ward/night"].package == world.package


# Each module, the entry point, and what the error should name besides the package.
BROKEN = {
    "missing import": ("import no_such_module_anywhere\n", "bad:night", "no_such_module_anywhere"),
    "missing module": (None, "bad:night", "bad"),
    "missing function": ("x = 1\n", "bad:night", "night"),
    "no entry point at all": ("x = 1\n", "not an entry point!", "ward/bad"),
    "syntax": ("def night(:\n", "bad:night", "SyntaxError"),
    "many lines": ("raise ImportError('first line\\nsecond line')\n", "bad:night", "first line"),
    "import raises": ("raise KeyError('licence')\n", "bad:night", "licence"),
    "no function": ("night = 5\n", "bad:night", "5"),
}
BROKEN_WHEN_BUILT = {
    "returns a number": ("def night():\n    return 5\n", "bad:night", "5"),
    "returns nothing": ("def night():\n    pass\n", "bad:night", "None"),
    "raises": ("def night():\n    raise RuntimeError('boom')\n", "bad:night", "boom"),
    "raises a key": ("def night():\n    return {}['beds']\n", "bad:night", "beds"),
    "divides": ("def night():\n    return 1 / 0\n", "bad:night", "division"),
    "raises many lines": (
        "def night():\n    raise RuntimeError('first line\\nsecond line')\n",
        "bad:night",
        "first line",
    ),
    "needs an argument": ("def night(beds):\n    pass\n", "bad:night", "beds"),
    "has no signature": ("night = dict\n", "bad:night", "bad"),
}


@pytest.mark.parametrize("case", [*BROKEN, *BROKEN_WHEN_BUILT])
def test_a_broken_world_is_named_with_its_package_in_one_sentence(install, case):
    module, value, names = {**BROKEN, **BROKEN_WHEN_BUILT}[case]
    install("bad", module, worlds={"ward/bad": value})
    with pytest.raises(CounselError) as fault:
        make("ward/bad")
    told = one_sentence(fault)
    assert "package bad" in told
    assert "ward/bad" in told
    assert names in told


@pytest.mark.parametrize("case", [*BROKEN, *BROKEN_WHEN_BUILT])
def test_a_broken_world_does_not_keep_the_others_from_being_listed(install, case):
    module, value, _ = {**BROKEN, **BROKEN_WHEN_BUILT}[case]
    install("bad", module, worlds={"ward/bad": value})
    install("wards", WARD, worlds={"ward/night": "wards:night"})
    assert set(list_worlds()) == {*OURS, "ward/bad", "ward/night"}
    summaries = {name: world.summary for name, world in list_worlds().items()}
    assert summaries["ward/night"] == "A ward at night, with some beds."
    assert "\n" not in summaries["ward/bad"]
    if case in BROKEN:
        assert "package bad" in summaries["ward/bad"]
    assert make("ward/night").n_states == 2
    assert make("night-shift").horizon == 12


def test_an_entry_point_of_another_class_is_loaded():
    class Point:  # as of importlib_metadata, whose class takes over once it is imported
        dist, module = None, "wards"

        def load(self):
            return list_worlds()["night-shift"].builder()

    world = World("ward/night", Point())
    assert world.package == "wards"
    assert world.build().n_states == 4
