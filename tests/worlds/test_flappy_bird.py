"""Flappy Bird: every entry against the slow version, people by hand, what the maps promise."""

from fractions import Fraction

import numpy as np
import pytest

import counsel
from counsel import CounselError
from counsel.worlds import GridMap, generate_map, make, make_flappy_bird
from counsel.worlds.grid_map import EMPTY, STAR, WALL
from tests.support import slow_worlds as slow

SLOW_PEOPLE = {"greedy": slow.greedy, "safe": slow.safe}
SHIPPED = ("three-phases", "budget")
HALF = Fraction(1, 2)
UP, UP_UP, DOWN = (1, 0, 0), (0, 1, 0), (0, 0, 1)

# Sizes that are narrow, flat or a single cell come first.
SIZES = [(1, 1), (1, 6), (6, 1), (2, 5), (2, 2), (3, 3), (3, 12), (4, 9), (5, 4), (5, 30)]
SIZES += [(6, 7), (7, 20), (8, 3), (9, 15), (12, 12)]


def sprinkled(rows, columns, seed):
    """A map of chance cells, as lines; the start stays empty."""
    rng = np.random.default_rng(seed)
    walls = rng.uniform(0.05, 0.5)
    stars = rng.uniform(0.05, 0.5)
    letters = rng.choice(list(".*#"), p=[1 - walls - stars, stars, walls], size=(rows, columns))
    letters[rows // 2, 0] = "."
    return ["".join(row) for row in letters]


def generated(rows, columns, seed):
    grid = generate_map(rows, columns, rng=np.random.default_rng(seed))
    return str(grid).splitlines()


def chance_maps():
    for seed, (rows, columns) in enumerate(SIZES):
        yield pytest.param(generated, rows, columns, seed, id=f"generated-{rows}x{columns}")
        yield pytest.param(sprinkled, rows, columns, seed, id=f"sprinkled-{rows}x{columns}")


def numbers(lines):
    """The index of each state, as the real code counts: down each column, then "over"."""
    order = [(r, c) for c in range(len(lines[0])) for r in range(len(lines))]
    return {state: number for number, state in enumerate([*order, slow.OVER])}


def check_same(problem, lines, human):
    """Hold every transition, reward, policy entry and the start against the slow version."""
    world, people, number = slow.flappy(lines), SLOW_PEOPLE[human](lines), numbers(lines)
    assert problem.horizon == world.horizon
    assert (problem.n_states, problem.n_actions) == (len(number), 3)
    start = np.zeros(len(number))
    start[number[world.start]] = 1.0
    assert problem.mdp.start.tolist() == start.tolist()
    assert problem.mdp.allowed.all()
    reward, policy = problem.mdp.reward, problem.policy
    wrong = []
    for state, s in number.items():
        own = [float(part) for part in people.get(state, ())]  # nobody is inside a wall
        for h in range(problem.horizon):
            if own and policy[h, s].tolist() != pytest.approx(own, abs=1e-12):
                wrong.append(f"step {h} {state}: policy {policy[h, s]}, slow {own}")
            if reward[h, s].tolist() != [world.reward[state]] * 3:
                wrong.append(f"step {h} {state}: reward {reward[h, s]}, slow {world.reward[state]}")
            for action, expected in enumerate(world.next[state]):
                after, chance = problem.mdp.kernel.successors(h, s, action)
                if (after.tolist(), chance.tolist()) != ([number[expected]], [1.0]):
                    wrong.append(f"step {h} {state} action {action}: to {after}, slow {expected}")
    assert wrong == []


# ------------------------------------------------------------------- against the slow version


@pytest.mark.parametrize("human", SLOW_PEOPLE)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_maps_are_the_slow_version_in_every_entry(name, human):
    lines = str(GridMap.named(name)).splitlines()
    check_same(make_flappy_bird(map=name, human=human), lines, human)


@pytest.mark.parametrize("human", SLOW_PEOPLE)
@pytest.mark.parametrize(("draw", "rows", "columns", "seed"), list(chance_maps()))
def test_chance_maps_are_the_slow_version_in_every_entry(draw, rows, columns, seed, human):
    lines = draw(rows, columns, seed)
    check_same(make_flappy_bird(map=GridMap.parse("\n".join(lines)), human=human), lines, human)


# ------------------------------------------------------------------------------- by hand

# Zig-zag is Up in columns 0 and 2, Down in columns 1 and 3.
TINY = ["..#.", ".*#.", "..##", ".*.*", "...*"]

NEXT_BY_HAND = {
    # (row, column): where Up, Up-Up and Down lead
    (2, 0): ((1, 1), (0, 1), (3, 1)),
    (0, 0): (slow.OVER, slow.OVER, (1, 1)),  # the top edge
    (1, 0): ((0, 1), slow.OVER, (2, 1)),  # Up-Up leaves, Up does not
    (4, 0): ((3, 1), (2, 1), slow.OVER),  # the bottom edge
    (1, 1): (slow.OVER, slow.OVER, slow.OVER),  # wall, edge, wall
    (3, 2): (slow.OVER, (1, 3), (4, 3)),  # Up-Up flies over the wall it does not land on
    (4, 2): ((3, 3), slow.OVER, slow.OVER),  # Up-Up lands on that wall
    (0, 2): (slow.OVER, slow.OVER, slow.OVER),  # nobody is in a wall
    (1, 3): (slow.OVER, slow.OVER, slow.OVER),  # the last column
}

GREEDY_BY_HAND = {
    (2, 0): (HALF, 0, HALF),  # stars above and below
    (3, 0): UP_UP,  # one star, two rows up
    (0, 0): DOWN,  # one star, below
    (1, 0): UP,  # no star ahead: zig-zag
    (4, 0): UP,  # one star, above
    (2, 1): DOWN,  # nothing, and the zig-zag happens to avoid the walls
    (1, 1): DOWN,  # nothing: zig-zag, into the wall
    (4, 1): DOWN,  # nothing: zig-zag, off the map
    (3, 2): DOWN,  # a star below, walls above do not matter
    (4, 2): UP,  # a star above
    (0, 3): DOWN,  # last column: zig-zag
    (4, 3): DOWN,
}

SAFE_BY_HAND = {
    (2, 0): UP,  # nothing in the way of the zig-zag; stars do not matter
    (3, 0): UP,
    (0, 0): DOWN,  # Up and Up-Up leave the map
    (1, 0): UP,
    (2, 1): DOWN,  # walls above, the zig-zag avoids them
    (1, 1): DOWN,  # nothing avoids the walls: zig-zag
    (4, 1): UP,  # Down leaves the map, Up-Up hits a wall
    (0, 1): DOWN,  # edge, edge and wall: nothing avoids them, zig-zag
    (3, 2): (0, HALF, HALF),  # the zig-zag hits a wall, both others do not
    (4, 2): UP,
    (0, 3): DOWN,  # last column: zig-zag
    (4, 3): DOWN,
}

BY_HAND = {"greedy": GREEDY_BY_HAND, "safe": SAFE_BY_HAND}


@pytest.mark.parametrize("human", BY_HAND)
def test_people_do_what_was_worked_out_by_hand(human):
    grid = GridMap.parse("\n".join(TINY))
    problem = make_flappy_bird(map=grid, human=human)
    for (row, column), own in BY_HAND[human].items():
        assert SLOW_PEOPLE[human](TINY)[row, column] == own
        told = problem.policy[column, grid.state(row, column)].tolist()
        assert told == pytest.approx([float(part) for part in own], abs=1e-12), (row, column)


def test_moves_are_those_worked_out_by_hand():
    grid = GridMap.parse("\n".join(TINY))
    kernel = make_flappy_bird(map=grid, human="safe").mdp.kernel
    for (row, column), places in NEXT_BY_HAND.items():
        assert slow.flappy(TINY).next[row, column] == places
        for action, place in enumerate(places):
            after, _ = kernel.successors(0, grid.state(row, column), action)
            expected = 20 if place == slow.OVER else grid.state(*place)
            assert after.tolist() == [expected], (row, column, action)


def test_a_star_pays_while_the_bird_is_on_it_whatever_it_does():
    grid = GridMap.parse("\n".join(TINY))
    reward = make_flappy_bird(map=grid, human="greedy").mdp.reward
    stars = [grid.state(1, 1), grid.state(3, 1), grid.state(3, 3), grid.state(4, 3)]
    for s in range(21):
        assert (reward[:, s] == (1.0 if s in stars else 0.0)).all()


def test_values_are_those_worked_out_by_hand():
    # Two rows, start below. Greedy goes Up to the one star and Down to the other.
    problem = make_flappy_bird(map=GridMap.parse(".*.\n..*"), human="greedy")
    never = counsel.Policy.never(horizon=3, n_states=7, n_actions=3)
    assert counsel.evaluate(problem, never).value == 2.0
    # One row has no way but out, so the star at the start is all there is.
    problem = make_flappy_bird(map=GridMap.parse("***"), human="safe")
    assert counsel.solve(problem).value == 1.0
    # A star one, three and two rows higher; adherence to Up-Up is 0.7.
    problem = make_flappy_bird(map=GridMap.parse(".*\n..\n.."), human="greedy")
    assert counsel.solve(problem).value == 1.0  # Greedy goes Up
    problem = make_flappy_bird(map=GridMap.parse(".*\n..\n..\n..\n..\n.."), human="greedy")
    assert counsel.solve(problem).value == 0.0  # out of reach
    problem = make_flappy_bird(map=GridMap.parse(".*\n..\n..\n.."), human="safe")
    assert counsel.solve(problem).value == pytest.approx(0.7)  # Safe alone goes Up, below it
    assert counsel.solve(problem).advice_count == 1.0


# ----------------------------------------------------------------------------- grid maps


@pytest.mark.parametrize("lines", [TINY, ["."], ["..*#"], [".", "*", "#"]])
def test_a_map_reads_what_is_written_and_writes_it_back(lines):
    grid = GridMap.parse("\n".join(lines))
    assert (grid.rows, grid.columns) == (len(lines), len(lines[0]))
    assert str(grid) == "\n".join(lines)
    assert grid.cells.dtype == np.uint8
    letter = {".": EMPTY, "*": STAR, "#": WALL}
    assert (EMPTY, STAR, WALL) == (0, 1, 2)
    assert grid.cells.tolist() == [[letter[mark] for mark in line] for line in lines]
    for row in range(grid.rows):
        for column in range(grid.columns):
            assert grid.state(row, column) == column * grid.rows + row


@pytest.mark.parametrize("text", ["", "..\n.", ".x", "\n"])
def test_a_map_that_makes_no_sense_is_refused(text):
    with pytest.raises(CounselError):
        GridMap.parse(text)


@pytest.mark.parametrize("text", ["*", "."])
def test_a_map_with_an_ending_newline_is_the_same_map(text):
    assert str(GridMap.parse(text + "\n")) == text


def test_a_map_can_come_from_a_file(tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text("\n".join(TINY) + "\n")
    assert str(GridMap.read(path)) == "\n".join(TINY)
    check_same(make_flappy_bird(map=path, human="safe"), TINY, "safe")
    check_same(make_flappy_bird(map=str(path), human="safe"), TINY, "safe")


def test_a_drawn_map_has_the_size_asked_for_and_follows_the_generator():
    for seed, (rows, columns) in enumerate(SIZES):
        one, two = (generate_map(rows, columns, rng=np.random.default_rng(seed)) for _ in range(2))
        assert (one.rows, one.columns) == (rows, columns)
        assert str(one) == str(two)
    texts = {str(generate_map(7, 20, rng=np.random.default_rng(seed))) for seed in range(10)}
    assert len(texts) == 10


# --------------------------------------------------------------------- names and settings


def test_states_and_actions_have_names():
    problem = make_flappy_bird(map=GridMap.parse("\n".join(TINY)), human="safe")
    assert problem.mdp.action_labels == ("Up", "Up-Up", "Down")
    names = [f"c{column}r{row}" for column in range(4) for row in range(5)]
    assert problem.mdp.state_labels == (*names, "over")


@pytest.mark.parametrize(
    ("adherence", "expected"),
    [
        ("mixed", [0.9, 0.7, 0.9]),
        ("high", [0.8, 0.8, 0.8]),
        ("low", [0.4, 0.4, 0.4]),
        (0.65, [0.65, 0.65, 0.65]),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
    ],
)
@pytest.mark.parametrize("human", SLOW_PEOPLE)
def test_adherence_depends_on_the_advice_alone(human, adherence, expected):
    problem = make_flappy_bird(map="three-phases", human=human, adherence=adherence)
    np.testing.assert_array_equal(problem.adherence, np.broadcast_to(expected, (20, 141, 3)))


def test_adherence_may_depend_on_the_state_too():
    rng = np.random.default_rng(0)
    theta = rng.uniform(size=(141, 3))
    problem = make_flappy_bird(map="three-phases", human="greedy", adherence=theta)
    np.testing.assert_array_equal(problem.adherence, np.broadcast_to(theta, (20, 141, 3)))


def test_mixed_adherence_is_the_papers():
    assert tuple(map(float, slow.FLAPPY_ADHERENCE)) == (0.9, 0.7, 0.9)
    default = make_flappy_bird(map="three-phases", human="greedy")
    assert default.adherence[0, 0].tolist() == [0.9, 0.7, 0.9]


@pytest.mark.parametrize(
    ("name", "map_name", "human"),
    [
        ("flappy-bird/greedy", "three-phases", "greedy"),
        ("flappy-bird/safe", "three-phases", "safe"),
        ("flappy-bird-budget/greedy", "budget", "greedy"),
    ],
)
def test_worlds_are_made_by_name(name, map_name, human):
    made = make(name)
    check_same(made, str(GridMap.named(map_name)).splitlines(), human)
    assert (made.adherence == [0.9, 0.7, 0.9]).all()


def test_a_horizon_can_be_asked_for():
    assert make_flappy_bird(map="three-phases", human="safe", horizon=5).horizon == 5


@pytest.mark.parametrize(
    "wrong",
    [{"map": "no-such-map"}, {"human": "bold"}, {"adherence": "medium"}, {"adherence": 1.5}],
)
def test_what_does_not_exist_is_refused(wrong):
    with pytest.raises(CounselError):
        make_flappy_bird(**{"map": "three-phases", "human": "greedy", **wrong})


def test_a_name_nobody_knows_is_refused():
    with pytest.raises(CounselError):
        make("flappy-bird/bold")


# -------------------------------------------------------------- the map with three phases

PHASES = (range(7), range(7, 14), range(14, 20))


def counts(grid, columns):
    cells = grid.cells[:, list(columns)]
    return int((cells == STAR).sum()), int((cells == WALL).sum())


def pieces_by_phase(human, penalty):
    """Share of the expected pieces of advice given in the columns of each phase."""
    problem = make_flappy_bird(map="three-phases", human=human)
    plan = counsel.solve(problem, penalty=penalty)
    pieces = counsel.evaluate(problem, plan.policy).pieces
    assert pieces[-1].sum() == 0.0  # nobody is advised when it is over
    by_column = pieces[:-1].sum(axis=1).reshape(20, 7).sum(axis=1)
    assert by_column.sum() == pytest.approx(plan.advice_count)
    assert by_column.sum() > 0.5
    return [by_column[list(phase)].sum() / by_column.sum() for phase in PHASES]


def test_three_phases_has_stars_then_walls_then_both():
    grid = GridMap.named("three-phases")
    assert (grid.rows, grid.columns) == (7, 20)
    stars, walls = counts(grid, PHASES[0])
    assert walls == 0
    assert stars >= 10
    stars, walls = counts(grid, PHASES[1])
    assert walls >= 10
    assert stars <= 2
    stars, walls = counts(grid, PHASES[2])
    assert walls >= 5
    assert stars >= 5


@pytest.mark.parametrize("name", SHIPPED)
def test_the_bird_can_reach_the_last_column_alive(name):
    grid = GridMap.named(name)
    assert slow.furthest_column(str(grid).splitlines()) == grid.columns - 1


@pytest.mark.parametrize("human", SLOW_PEOPLE)
def test_both_people_earn_less_alone_than_with_the_best_advice(human):
    problem = make_flappy_bird(map="three-phases", human=human)
    never = counsel.Policy.never(horizon=20, n_states=141, n_actions=3)
    alone = counsel.evaluate(problem, never).value
    assert counsel.solve(problem).value > alone + 1.0
    assert counsel.solve(problem, penalty=0.3).penalised_value > alone + 0.1


def test_greedy_is_advised_where_there_are_walls():
    stars, walls, both = pieces_by_phase("greedy", 0.3)
    assert stars < 0.1
    assert walls > 0.1
    assert both > 0.1


def test_safe_is_advised_where_there_are_stars():
    stars, walls, both = pieces_by_phase("safe", 0.3)
    assert walls < 0.1
    assert stars > 0.1
    assert both > 0.1


# --------------------------------------------------------------------- the map of the budget


@pytest.fixture(scope="module")
def budget():
    return make_flappy_bird(map="budget", human="greedy")


def test_the_best_advice_needs_more_than_one_piece(budget):
    assert counsel.solve(budget).advice_count > 1.0


def test_two_pieces_are_all_the_best_advice_needs(budget):
    free, two = counsel.solve(budget), counsel.solve(budget, budget=2, hard=True)
    assert two.value == pytest.approx(free.value, abs=1e-9)


def test_one_piece_earns_less(budget):
    free = counsel.solve(budget).value
    assert counsel.solve(budget, budget=1).value < free - 1e-3
    assert counsel.solve(budget, budget=1, hard=True).value < free - 1e-3


def test_with_one_piece_one_must_choose(budget):
    one, two = (counsel.solve(budget, budget=pieces, hard=True) for pieces in (1, 2))
    s = int(np.argmax(budget.mdp.start))
    # One piece is spent elsewhere than the first of two.
    assert int(one.policy.advice[-1, 0, s]) != int(two.policy.advice[-1, 0, s])
    assert one.values[-1, 0, s] < two.values[-1, 0, s] - 1e-3
    # What the last piece adds is its price, and it is not nothing.
    assert two.price == pytest.approx(two.value - one.value)
    assert two.price > 1e-3


def test_advice_is_worth_something_on_the_budget_map(budget):
    never = counsel.Policy.never(
        horizon=budget.horizon, n_states=budget.n_states, n_actions=budget.n_actions
    )
    alone = counsel.evaluate(budget, never).value
    assert alone < counsel.solve(budget, budget=1, hard=True).value
