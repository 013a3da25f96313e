"""Grid maps: text in and out, where a fault is, drawn maps that can be flown, what is shipped."""

import dataclasses
import sys
import tomllib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hatchling.builders.wheel import WheelBuilder
from hypothesis import given
from hypothesis import strategies as st

import counsel
from counsel import CounselError
from counsel.worlds import GridMap, generate_map, make_flappy_bird
from counsel.worlds.grid_map import EMPTY, STAR, WALL, map_names
from tests.support.each import each
from tests.support.paths import ROOT

KIND = {".": 0, "*": 1, "#": 2}

texts = st.integers(1, 8).flatmap(
    lambda columns: st.lists(
        st.text(alphabet=".*#", min_size=columns, max_size=columns), min_size=1, max_size=8
    )
)


def one_sentence(fault):
    """Hold an error to one line that says something."""
    text = str(fault.value)
    assert 10 < len(text) < 300
    assert "\n" not in text
    return text


def refuse(text):
    with pytest.raises(CounselError) as fault:
        GridMap.parse(text, name="my map")
    return one_sentence(fault)


# ------------------------------------------------------------------------------ text in and out


@given(texts)
def test_a_map_says_again_what_it_was_told(lines):
    grid = GridMap.parse("\n".join(lines))
    assert str(grid).split("\n") == lines
    assert grid.cells.tolist() == [[KIND[sign] for sign in line] for line in lines]
    again = GridMap(grid.cells)
    assert str(again) == str(grid)
    assert repr(again) == f"GridMap({len(lines)} × {len(lines[0])})"


@given(texts, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(0, 3))
def test_line_ends_of_any_system_and_empty_lines_at_the_end_are_no_cells(lines, end, blank):
    assert str(GridMap.parse(end.join(lines) + blank * end)).split("\n") == lines


@given(texts, st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path_factory, lines, mark, end):
    path = tmp_path_factory.getbasetemp() / "mark.txt"
    path.write_bytes(b"\xef\xbb\xbf" * mark + (end.join(lines) + end).encode())
    assert str(GridMap.read(path)).split("\n") == lines
    assert str(GridMap.read(str(path))).split("\n") == lines


def calls(run):
    """Return what a function returns, and how many calls it made."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        returned = run()
    finally:
        sys.setprofile(None)
    return returned, count


def test_reading_a_very_large_map_takes_work_in_proportion_to_its_size(tmp_path):
    rng = np.random.default_rng(0)
    cells = rng.integers(3, size=(1000, 1000), dtype=np.uint8)
    path, small = tmp_path / "large.txt", tmp_path / "small.txt"
    rows = [row.tobytes() for row in np.frombuffer(b".*#", np.uint8)[cells]]
    path.write_bytes(b"\n".join(rows))
    small.write_bytes(b"\n".join(rows[:100]))
    _, few = calls(lambda: GridMap.read(small))
    grid, many = calls(lambda: GridMap.read(path))
    assert many <= 10 * few
    np.testing.assert_array_equal(grid.cells, cells)
    with path.open("a") as stream:
        stream.write("\n" + "." * 999 + "x")
    with pytest.raises(CounselError, match="line 1001, column 1000"):
        GridMap.read(path)


# --------------------------------------------------------------------------- where a fault is

# What splits a line for Python, but for the ends that editors know.
BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@given(texts, st.data())
def test_a_bad_character_is_reported_where_it_is(lines, data):
    i = data.draw(st.integers(0, len(lines) - 1))
    j = data.draw(st.integers(0, len(lines[0]) - 1))
    bad = data.draw(
        st.one_of(
            st.sampled_from(" xo?O|\t\0\x7f\ufeff\xa0·•＊⋆＃\U0001f426"),
            st.characters(exclude_characters=".*#\n\r" + BREAKS, exclude_categories=["Cs"]),
        )
    )
    lines[i] = lines[i][:j] + bad + lines[i][j + 1 :]
    told = refuse("\n".join(lines))
    assert told.startswith(f"my map, line {i + 1}, column {j + 1}: {bad!r}")


@pytest.mark.parametrize("sign", ["\f", "\x1c", "\x85", "\u2028"])
def test_a_sign_that_editors_show_within_a_line_does_not_end_it(sign):
    # Python's splitlines would make two rows of this one.
    told = refuse(f"..{sign}..")
    assert told.startswith(f"my map, line 1, column 3: {sign!r}")


def test_the_first_fault_is_reported():
    assert "line 2, column 3: 'x'" in refuse("...\n..x\ny..")
    assert "line 2, column 1: 'x'" in refuse("...\nx.z")


@given(texts.filter(lambda lines: len(lines) > 1), st.data())
def test_a_row_of_another_length_is_reported_at_the_first_cell_too_few_or_too_many(lines, data):
    i = data.draw(st.integers(1, len(lines) - 1))
    columns = len(lines[0])
    longest = columns + 3
    length = data.draw(st.integers(0, longest).filter(lambda n: n != columns))
    if length == 0 and i == len(lines) - 1:
        lines.append(lines[0])  # at the end an empty line would be none
    lines[i] = (lines[i] * 4 + "..." * 4)[:length]
    told = refuse("\n".join(lines))
    column = length + 1 if length < columns else columns + 1
    assert told.startswith(f"my map, line {i + 1}, column {column}: ")
    assert f"{length} cells" in told
    assert f"line 1 has {columns}" in told


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n", "\r\n"])
def test_a_map_of_nothing_says_so(text):
    told = refuse(text)
    assert told.startswith("my map")
    assert "no cells" in told
    assert ". * #" in told


@pytest.mark.parametrize("text", ["\n...\n...", "\n\n...", "\r\n..."])
def test_an_empty_first_line_is_reported_as_such(text):
    # The map does have cells: whoever reads this needs to know that it is line 1 that has none.
    assert "line 1" in refuse(text)


@pytest.mark.parametrize("text", [" ", "  \n...", "\t"])
def test_blanks_are_no_cells(text):
    assert "line 1, column 1" in refuse(text)


# ------------------------------------------------------------------------------- bad files


def read_refused(path):
    with pytest.raises(CounselError) as fault:
        GridMap.read(path)
    told = one_sentence(fault)
    with pytest.raises(CounselError) as fault:
        make_flappy_bird(map=Path(path))
    assert one_sentence(fault) == told
    assert str(path) in told
    return told


def test_a_missing_file_is_missing(tmp_path):
    assert "No such file" in read_refused(tmp_path / "none.txt")
    assert "No such file" in read_refused(tmp_path / "none" / "none.txt")


def test_a_folder_is_no_map(tmp_path):
    assert "directory" in read_refused(tmp_path)


def test_a_file_within_a_file_is_no_map(tmp_path):
    (tmp_path / "file").write_text(".")
    assert "directory" in read_refused(tmp_path / "file" / "map.txt")


@pytest.mark.parametrize(
    "content",
    [bytes(range(256)), b"\x89PNG\r\n\x1a\n\x00\x00", "..\n..".encode("utf-16"), b"..\n.\xff"],
    ids=["bytes", "png", "utf-16", "one byte"],
)
def test_a_binary_file_is_no_map(tmp_path, content):
    path = tmp_path / "binary.txt"
    path.write_bytes(content)
    assert "not a text file" in read_refused(path)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file_has_no_cells(tmp_path, content):
    path = tmp_path / "empty.txt"
    path.write_bytes(content)
    assert "no cells" in read_refused(path)


def test_a_fault_in_a_file_is_reported_with_its_path_line_and_column(tmp_path):
    path = tmp_path / "map.txt"
    path.write_bytes(b"\xef\xbb\xbf...\r\n.?.\r\n")
    assert read_refused(path).startswith(f"{path}, line 2, column 2: '?'")
    path.write_bytes(b"\xef\xbb\xbf...\r\n..\r\n")
    assert read_refused(path).startswith(f"{path}, line 2, column 3: ")


# -------------------------------------------------------------------------------- from arrays


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint64])
def test_a_map_from_an_array_of_any_whole_numbers(dtype):
    cells = np.array([[0, 1, 2], [2, 1, 0]], dtype=dtype)
    assert str(GridMap(cells)) == ".*#\n#*."
    assert str(GridMap(cells.T)) == ".#\n**\n#."
    assert str(GridMap(cells.tolist())) == ".*#\n#*."


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([[0, 3]], "3"),
        ([[0, -1]], "-1"),
        ([[0, 256]], "256"),
        ([[0, 2**40]], str(2**40)),
        ([0, 1, 2], "(3,)"),
        (1, "()"),
        ([[[0], [1]]], "(1, 2, 1)"),
        (np.zeros((0, 3), int), "(0, 3)"),
        (np.zeros((3, 0), int), "(3, 0)"),
        ([], "(0,)"),
        ([[0.0, 1.0]], "float"),
        ([[0, np.nan]], "float"),
        ([[True, False]], "bool"),
        ([[".", "#"]], "U1"),
        (".#", "U2"),
        (None, "object"),
        ([[0, 1], [0]], "cells"),
    ],
    ids=repr,
)
def test_an_array_that_is_no_map_is_refused_in_one_sentence(cells, says):
    with pytest.raises(CounselError) as fault:
        GridMap(cells)
    told = one_sentence(fault)
    assert told.startswith("cells")
    assert says in told


def test_a_map_is_read_only_and_its_own():
    cells = np.zeros((2, 3), dtype=np.uint8)
    grid = GridMap(cells)
    cells[0, 0] = 2
    assert grid.cells[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        grid.cells[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        grid.cells = cells
    for made in (GridMap.parse(".."), GridMap.named("budget"), GridMap(grid.cells)):
        assert not made.cells.flags.writeable
    assert not generate_map(3, 3, rng=np.random.default_rng(0)).cells.flags.writeable


# ------------------------------------------------------------------------------ shipped maps


@pytest.mark.parametrize("name", ["nowhere", "", "budget.txt", "../maps/budget", "Budget"])
def test_an_unknown_map_is_answered_with_all_there_are(name):
    with pytest.raises(CounselError) as fault:
        GridMap.named(name)
    told = one_sentence(fault)
    assert repr(name) in told
    assert "budget" in told
    assert "three-phases" in told


def test_the_maps_are_found_as_files_of_the_package():
    folder = resources.files("counsel.worlds").joinpath("maps")
    found = {file.name: file for file in folder.iterdir() if file.name.endswith(".txt")}
    assert {name.removesuffix(".txt") for name in found} == set(map_names())
    assert set(map_names()) == {"budget", "three-phases"}
    for name, file in found.items():
        assert file.read_text() == str(GridMap.named(name.removesuffix(".txt"))) + "\n"


def test_the_wheel_ships_the_maps():
    # Asks the builder which files it would pack, and packs none.
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["build-system"]["build-backend"] == "hatchling.build"
    builder = WheelBuilder(str(ROOT))
    with builder.config.set_build_data({"artifacts": [], "force_include": {}}):
        files = builder.recurse_included_files()
        packed = {Path(file.distribution_path).as_posix() for file in files}
    assert {f"counsel/worlds/maps/{name}.txt" for name in map_names()} <= packed
    assert "counsel/worlds/grid_map.py" in packed


# ------------------------------------------------------------------------------- drawn maps


def last_column_reached(grid):
    """How far a bird can fly, by breadth first: one or two up, or one down, a column a move."""
    lines = str(grid).splitlines()
    rows, columns = len(lines), len(lines[0])
    here = {rows // 2}
    for column in range(1, columns):
        there = {row + move for row in here for move in (-1, -2, 1) if 0 <= row + move < rows}
        here = {row for row in there if lines[row][column] != "#"}
        if not here:
            return column - 1
    return columns - 1


@each("walls", [0.2, 0.6, 1.0])
def test_every_drawn_map_can_be_survived_and_starts_with_an_empty_column(walls):
    for seed in range(200):
        rng = np.random.default_rng([seed, 1])
        rows, columns = int(rng.integers(2, 10)), int(rng.integers(1, 40))
        stars = min(0.2, 1.0 - walls)
        grid = generate_map(rows, columns, rng=rng, stars=stars, walls=walls)
        assert (grid.rows, grid.columns) == (rows, columns)
        assert (grid.cells[:, 0] == 0).all()
        assert last_column_reached(grid) == columns - 1, seed


def test_survival_shows_in_the_world_too():
    # With walls all over but for one flight, whoever always listens keeps alive to the end.
    grid = generate_map(5, 12, rng=np.random.default_rng(4), stars=0.0, walls=1.0)
    assert (grid.cells == 0).sum() == 5 + 11
    cells = grid.cells.copy()
    cells[:, -1] = np.where(cells[:, -1] == 0, 1, 2)
    starred = make_flappy_bird(map=GridMap(cells), human="safe", adherence=1.0)
    assert counsel.solve(starred).value == 1.0


@each(("stars", "walls"), [(0.2, 0.2), (0.0, 0.3), (0.5, 0.0), (0.3, 0.65), (1 / 3, 1 / 3)])
def test_stars_and_walls_have_the_shares_asked_for(stars, walls):
    rows, columns, maps = 7, 20, 200
    rng = np.random.default_rng(11)
    cells = np.stack(
        [generate_map(rows, columns, rng=rng, stars=stars, walls=walls).cells for _ in range(maps)]
    )[:, :, 1:]
    # One cell of each column is kept free of walls, whatever was drawn: so walls are counted
    # against the other rows. Cells are independent; four standard errors of a share.
    for kind, share, n in [(1, stars, cells.size), (2, walls, cells.size * (rows - 1) // rows)]:
        error = np.sqrt(share * (1.0 - share) / n)
        assert abs((cells == kind).sum() / n - share) <= 4.0 * error, kind


def test_the_same_seed_draws_the_same_map_and_the_generator_goes_on():
    one, two = (np.random.default_rng(5) for _ in range(2))
    first, again = (str(generate_map(6, 30, rng=rng)) for rng in (one, two))
    assert first == again
    assert str(generate_map(6, 30, rng=one)) == str(generate_map(6, 30, rng=two)) != first


def test_one_row_cannot_be_flown_but_is_drawn():
    grid = generate_map(1, 50, rng=np.random.default_rng(0), stars=0.0, walls=1.0)
    assert str(grid) == "." + 49 * "#"


@each(("stars", "walls"), [(0.9, 0.1), (0.1, 0.9), (0.7, 0.3), (0.6, 0.4), (0.8, 0.2), (1.0, 0.0)])
def test_shares_that_sum_to_one_leave_no_cell_empty_but_on_the_flight(stars, walls):
    # 1.0 - 0.9 - 0.1 is -3e-17 to a computer and 0 to a person.
    grid = generate_map(7, 20, rng=np.random.default_rng(0), stars=stars, walls=walls)
    assert ((grid.cells[:, 1:] == 0).sum(axis=0) <= 1).all()


@pytest.mark.parametrize(
    "wrong",
    [
        {"stars": -0.1},
        {"walls": -1e-9},
        {"stars": 1.1},
        {"stars": 0.6, "walls": 0.5},
        {"walls": 0.81},
        {"stars": np.nan},
        {"walls": np.inf},
        {"stars": np.inf, "walls": -np.inf},
        {"stars": "many"},
        {"walls": None},
        {"stars": True},
        {"rows": 0},
        {"columns": 0},
        {"rows": -3},
        {"rows": 2.5},
        {"columns": "20"},
        {"rng": 5},
        {"rng": None},
    ],
    ids=repr,
)
def test_what_no_map_can_be_drawn_from_is_refused_in_one_sentence(wrong):
    told = {"rows": 5, "columns": 9, "rng": np.random.default_rng(0), **wrong}
    with pytest.raises(CounselError) as fault:
        generate_map(told.pop("rows"), told.pop("columns"), **told)
    assert any(name in one_sentence(fault) for name in wrong)


def test_shares_may_differ_from_column_to_column():
    grid = generate_map(
        6, 4, rng=np.random.default_rng(0), stars=[0.0, 1.0, 0.0, 0.0], walls=[0.0, 0.0, 1.0, 0.0]
    )
    assert (grid.cells[:, 1] == STAR).all()
    assert (grid.cells[:, 2] == WALL).sum() == 5  # the flight stays free
    assert (grid.cells[:, 3] == EMPTY).all()
    for wrong in ({"stars": [0.1, 0.2]}, {"walls": [[0.1] * 4]}, {"stars": [0.9] * 4}):
        with pytest.raises(CounselError, match=r"stars|walls"):
            generate_map(6, 4, rng=np.random.default_rng(0), **wrong)
