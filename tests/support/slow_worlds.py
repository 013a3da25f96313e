"""Worlds again, slow and obvious: plain loops, dicts and fractions.

Those of the paper were written from paper.tex (Numerical Experiment, App. B) and READING rows 13 to
16, 20 and 21, without a look at ``counsel.worlds``, so that tests can
hold the two against each other.
"""

from fractions import Fraction
from itertools import product
from typing import NamedTuple

OVER = "over"
UNIFORM = (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3))


def equally(good):
    """Uniform over the actions that are good; None when none is."""
    count = sum(1 for is_good in good if is_good)
    if count == 0:
        return None
    return tuple(Fraction(1, count) if is_good else Fraction(0) for is_good in good)


def certain(action):
    return tuple(Fraction(1) if other == action else Fraction(0) for other in range(3))


# ------------------------------------------------------------------------------ Flappy Bird

UP, UP_UP, DOWN = 0, 1, 2
FLAPPY_ADHERENCE = (Fraction(9, 10), Fraction(7, 10), Fraction(9, 10))
ROWS_MOVED = {UP: -1, UP_UP: -2, DOWN: +1}


class Flappy(NamedTuple):
    """States are (row, column) and "over"; ``next`` lists one state for each action."""

    start: tuple
    horizon: int
    next: dict
    reward: dict


def every_cell(lines):
    return [(row, column) for column in range(len(lines[0])) for row in range(len(lines))]


def where_one_can_be(lines):
    """Return the cells that are not a wall. Nothing says what a person does inside a wall."""
    return [state for state in every_cell(lines) if cell_at(lines, *state) != "#"]


def cell_at(lines, row, column):
    """Return what is at a place: a letter of the map, or None outside of it."""
    if 0 <= row < len(lines) and 0 <= column < len(lines[0]):
        return lines[row][column]
    return None


def target(state, action):
    """Return the place an action moves to, on the map or not. What lies between is not touched."""
    row, column = state
    return row + ROWS_MOVED[action], column + 1


def flappy(lines):
    after, reward = {}, {}
    for state in every_cell(lines):
        here = cell_at(lines, *state)
        reached = []
        for action in (UP, UP_UP, DOWN):
            place = target(state, action)
            crashes = cell_at(lines, *place) in (None, "#")
            reached.append(OVER if here == "#" or crashes else place)
        after[state] = tuple(reached)
        reward[state] = 1 if here == "*" else 0
    after[OVER] = (OVER, OVER, OVER)
    reward[OVER] = 0
    return Flappy(start=(len(lines) // 2, 0), horizon=len(lines[0]), next=after, reward=reward)


def zig_zag(state):
    """Up in even columns, Down in odd ones, counted from 0."""
    _, column = state
    return UP if column % 2 == 0 else DOWN


def greedy(lines):
    """Return what Greedy does: any star in the next column, else zig-zag."""
    policy = {OVER: UNIFORM}
    for state in where_one_can_be(lines):
        star = [cell_at(lines, *target(state, action)) == "*" for action in (UP, UP_UP, DOWN)]
        policy[state] = equally(star) or certain(zig_zag(state))
    return policy


def safe(lines):
    """Return what Safe does: zig-zag if that avoids walls and edges, else whatever does."""
    policy = {OVER: UNIFORM}
    for state in where_one_can_be(lines):
        avoids = [
            cell_at(lines, *target(state, action)) in (".", "*") for action in (UP, UP_UP, DOWN)
        ]
        if avoids[zig_zag(state)]:
            policy[state] = certain(zig_zag(state))
        else:
            policy[state] = equally(avoids) or certain(zig_zag(state))
    return policy


def furthest_column(lines):
    """Return the last column the bird can reach alive."""
    world = flappy(lines)
    alive = {world.start}
    furthest = 0
    while alive:
        furthest = max(column for _, column in alive)
        alive = {t for state in alive for t in world.next[state] if t != OVER}
    return furthest


# ------------------------------------------------------------------------------ Car Driving

LEFT, STRAIGHT, RIGHT = 0, 1, 2
CAR_ADHERENCE = (Fraction(7, 10), Fraction(9, 10), Fraction(7, 10))
CAR_HORIZON = 10
LANES_MOVED = {LEFT: -1, STRAIGHT: 0, RIGHT: +1}
EMPTY, STONE, CAR = 0, 1, 2
CHANCE = {EMPTY: Fraction(4, 10), STONE: Fraction(3, 10), CAR: Fraction(3, 10)}
PAYS = {EMPTY: Fraction(1), STONE: Fraction(1, 2), CAR: Fraction(0)}

EVERY_ROW = list(product((EMPTY, STONE, CAR), repeat=3))


def row_chance(row):
    left, middle, right = row
    return CHANCE[left] * CHANCE[middle] * CHANCE[right]


FRESH = [(row, row_chance(row)) for row in EVERY_ROW]


def car_states():
    """Yield every state: (lane, current row, next row, row beyond), and last "over"."""
    for lane in range(3):
        for current in EVERY_ROW:
            for following in EVERY_ROW:
                for beyond in EVERY_ROW:
                    yield lane, current, following, beyond
    yield OVER


def car_number(state):
    """Return the state's index in the real code: lane first, then the rows, nearest first."""
    if state == OVER:
        return 3 * 27 * 27 * 27
    lane, *rows = state
    number = lane
    for left, middle, right in rows:
        number = number * 27 + 9 * left + 3 * middle + right
    return number


def car_target(lane, action, following):
    """Return the lane moved to, or None when that is off the road or a car."""
    new = lane + LANES_MOVED[action]
    if new not in (0, 1, 2) or following[new] == CAR:
        return None
    return new


def car_next(state, action):
    """Return the next states and their chances."""
    if state == OVER:
        return {OVER: Fraction(1)}
    lane, current, following, beyond = state
    new = car_target(lane, action, following)
    if current[lane] == CAR or new is None:
        return {OVER: Fraction(1)}
    return {(new, following, beyond, fresh): chance for fresh, chance in FRESH}


def car_reward(state):
    if state == OVER:
        return Fraction(0)
    lane, current, _, _ = state
    return PAYS[current[lane]]


def car_start():
    """Return the start distribution: the middle lane and three random rows."""
    chances = {}
    for current, one in FRESH:
        for following, two in FRESH:
            for beyond, three in FRESH:
                chances[1, current, following, beyond] = one * two * three
    return chances


def myopic(state):
    """Return what the driver does: any action that meets no car and no edge in the next row."""
    if state == OVER:
        return UNIFORM
    lane, _, following, _ = state
    open_ = [car_target(lane, action, following) is not None for action in (LEFT, STRAIGHT, RIGHT)]
    return equally(open_) or UNIFORM


# ------------------------------------------------------------------------------ call centre

ENGAGEMENT = ("engaged", "wavering", "drifting", "lost")


class CallCentre(NamedTuple):
    """States are names; tables are by (state, action). ``advised`` is the adherence."""

    start: dict
    next: dict
    habit: dict
    advised: dict


def call_centre(mother):
    """Return a mother "at home" or "working", from percentages as the rules of the world."""

    def percent(*numbers):
        return {state: Fraction(n, 100) for state, n in zip(ENGAGEMENT, numbers, strict=True)}

    after = {
        ("engaged", "skip"): percent(55, 40, 5, 0),
        ("engaged", "listen"): percent(92, 8, 0, 0),
        ("wavering", "skip"): percent(10, 50, 40, 0),
        ("wavering", "listen"): percent(45, 50, 5, 0),
        ("drifting", "skip"): percent(0, 10, 65, 25),
        ("drifting", "listen"): percent(10, 45, 42, 3),
        ("lost", "skip"): percent(0, 0, 2, 98),
        ("lost", "listen"): percent(0, 10, 35, 55),
    }
    at_home = mother == "at home"
    listens = percent(90, 60, 25, 5) if at_home else percent(80, 40, 15, 3)
    moved = percent(70, 65, 50, 20) if at_home else percent(50, 45, 35, 15)
    habit, advised = {}, {}
    for state in ENGAGEMENT:
        habit[state, "listen"], habit[state, "skip"] = listens[state], 1 - listens[state]
        advised[state, "listen"] = listens[state] + moved[state] * (1 - listens[state])
        advised[state, "skip"] = habit[state, "skip"]  # nobody is called to skip a message
    return CallCentre(percent(40, 35, 20, 5), after, habit, advised)


# Machine repair: condition 0 is new, the last is failed; then normal and thorough repair.


def repair_move(state, action, *, conditions):
    """Return the probability of each next state, and the reward."""
    normal, thorough, failed = conditions, conditions + 1, conditions - 1
    if state == normal:
        return {0: 0.5, normal: 0.5}, -2.0
    if state == thorough:
        return {0: 0.8, thorough: 0.2}, -6.0
    if action == 1:
        return {normal: 1.0}, 0.0
    if action == 2:
        return {thorough: 1.0}, 0.0
    earned = 10.0 - 10.0 * state**2 / failed**2
    if state == failed:
        return {failed: 1.0}, earned
    return {state: 0.7, state + 1: 0.3}, earned


def repair_habit(state, *, conditions):
    """Return how often the operator takes each action."""
    failed = conditions - 1
    if state > failed:
        return [1.0, 0.0, 0.0]
    chance = 0.7 if state == failed else state / (10.0 * failed)
    return [1.0 - chance, chance * 4 / 5, chance / 5]


# Inventory: the state is what is on the shelf in the evening.


def shop_move(stock, order, chance):
    """Return the probability of each stock the next evening, and the expected reward."""
    moves, reward, morning = {}, 0.0, stock + order
    for wanted, p in enumerate(chance):
        sold = min(wanted, morning)
        moves[morning - sold] = moves.get(morning - sold, 0.0) + p
        reward += p * (8.0 * sold - 0.5 * (morning - sold))
    return moves, reward - 4.0 * order - (3.0 if order > 0 else 0.0)
