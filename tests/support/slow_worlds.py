"""Both worlds of the paper again, slow and obvious: plain loops, dicts and fractions.

Written from paper.tex (Numerical Experiment, App. B) and READING rows 13 to 16, 20 and 21, without
a look at ``counsel.worlds``, so that tests can hold the two against each other.
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
