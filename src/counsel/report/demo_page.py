"""The page of ``counsel demo``: two players, when the machine advises, and what that is worth.

``demo_page`` is a pure function: results in, text out. Pictures are inline SVG, so the file opens
offline, follows the reader's light or dark theme, and prints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from counsel._arrays import Ints
from counsel.drawing.figure_style import DARK_GOLD, label_ends, name_axes, sheet
from counsel.drawing.inline_svg import inline_svg
from counsel.drawing.maps import draw_map
from counsel.drawing.palette import ADVICE, HARM, INK, SILENCE
from counsel.estimate.intervals import wilson
from counsel.learning.learn import Record
from counsel.model.problem import AdviceProblem
from counsel.planning.evaluate import Evaluation
from counsel.report.page_template import COMMON_STYLE, DARK_STYLE, table, table_head, whole_page
from counsel.simulate.episodes import Episodes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 3.1
"""The size of a chart in inches; its text stays readable on a phone."""

ROWS = 6
"""Pieces of advice listed for each player."""

FEW = 0.1
"""In phases with less than this share of the advice the machine hardly speaks."""

SAME = 5e-4
"""Differences of stars per flight below this are none."""


class Point(NamedTuple):
    """The expected pieces of advice and value of a policy, per episode."""

    pieces: float
    value: float


class Phase(NamedTuple):
    """A part of the map: its name, its first column and the column after its last."""

    name: str
    first: int
    end: int


class Reason(NamedTuple):
    """Why the machine advises in a cell.

    Column and row count from 0; ``habit`` is the probability of each action without advice;
    ``pieces`` the number of pieces per flight, and ``gain`` what a piece adds.
    """

    column: int
    row: int
    advice: str
    habit: dict[str, float]
    pieces: float
    gain: float


@dataclass(frozen=True, slots=True)
class Player:
    """A player, the learnt policy, and what its advice is worth.

    Attributes
    ----------
    key, name, habit
        A short name for ids, the name for readers, and the player's habit in words.
    problem
        The world and the player.
    records
        The records of learning.
    gap
        The shortfall of the learnt policy against the best, in stars per flight.
    evaluation
        The evaluation of the learnt policy.
    flights, flights_alone
        Simulated flights with the learnt policy, and without any advice.
    heard
        How often each advice was matched and given while learning; None if that says nothing about
        adherence.
    frontier
        The vertices of the frontier, from no advice to unlimited advice.
    always
        The pieces and the value of advising the best action at every step.
    reasons
        Why the learnt policy advises where it does, the most valuable cell first.
    """

    key: str
    name: str
    habit: str
    problem: AdviceProblem
    records: Sequence[Record]
    gap: float
    evaluation: Evaluation
    flights: Episodes
    flights_alone: Episodes
    heard: tuple[Ints, Ints] | None
    frontier: Sequence[Point]
    always: Point
    reasons: Sequence[Reason]

    @property
    def alone(self) -> float:
        """Stars per flight without advice."""
        return self.frontier[0].value

    @property
    def cost(self) -> float:
        """The regret of all flights while learning."""
        return self.records[-1].regret

    @property
    def episodes(self) -> int:
        """The number of flights while learning."""
        return self.records[-1].episode

    @property
    def half_cost_episode(self) -> int:
        """The flight by which half of the regret has occurred."""
        return next(r.episode for r in self.records if r.regret >= self.cost / 2)

    @property
    def silent_share(self) -> float:
        """The share of decisions without advice."""
        return float((self.flights.advice == self.flights.defer).mean())

    @property
    def advised_cells(self) -> int:
        """The number of cells with advice."""
        return int((self.evaluation.pieces.sum(axis=1) > 1e-9).sum())

    @property
    def met_cells(self) -> int:
        """The number of cells that flights meet."""
        return int((self.evaluation.occupancy.sum(axis=0)[:-1] > 1e-9).sum())

    @property
    def benefit(self) -> float:
        """The stars per flight that unlimited advice adds."""
        return self.frontier[-1].value - self.alone

    def crash_rate(self, flights: Episodes) -> float:
        """Return the share of flights that do not reach the last column."""
        return float((flights.lengths < self.problem.horizon).mean())

    def kept_share(self, pieces: float) -> float:
        """Return the share of the benefit of unlimited advice that some pieces per flight keep."""
        x, y = zip(*self.frontier, strict=True)
        return (float(np.interp(pieces, x, y)) - self.alone) / max(self.benefit, 1e-12)

    def shares_by_phase(self, phases: Sequence[Phase]) -> list[tuple[str, float]]:
        """Return the share of the advice in each part of the map; empty without advice."""
        rate, total = self.evaluation.advice_rate, self.evaluation.advice_count
        if total < 1e-9:
            return []
        return [(p.name, float(rate[p.first : p.end].sum()) / total) for p in phases]

    def match_rates(self) -> Iterator[tuple[str, int, tuple[float, float, float], float | None]]:
        """Yield each advice that was given: its name, count, match rate with interval, and truth.

        The truth is the adherence of the simulated player, None if it varies between states.
        """
        if self.heard is None:
            return
        matched, given = self.heard
        low, high = wilson(matched.astype(float), given.astype(float))
        names = self.problem.mdp.action_labels or [str(a) for a in range(given.size)]
        for a in np.flatnonzero(given):
            theta = self.problem.human.adherence[..., a]
            truth = float(theta.max()) if np.ptp(theta) < 1e-9 else None
            share = (float(matched[a] / given[a]), float(low[a]), float(high[a]))
            yield names[a], int(given[a]), share, truth


STYLE = f"""{COMMON_STYLE}{DARK_STYLE}
body {{ max-width: 70rem; }}
header {{ margin-bottom: 2.5rem; }}
.eyebrow {{ color: var(--advice); font-weight: 600; margin: 0 0 .5rem; }}
h1 {{ font-size: clamp(1.7rem, 4.5vw, 2.6rem); line-height: 1.15; letter-spacing: -.015em;
  max-width: 26ch; margin-bottom: 1rem; text-wrap: balance; }}
h2 {{ font-size: clamp(1.25rem, 3vw, 1.6rem); margin: 4rem 0 .6rem; max-width: 52ch;
  text-wrap: balance; }}
h3 {{ font-size: 1.05rem; margin: 0 0 .4rem; }}
p, ul.plain {{ max-width: 68ch; }}
p.lead {{ color: var(--soft); }}
figure {{ margin: 1.4rem 0 2.4rem; }}
figure svg {{ display: block; width: 100%; height: auto; overflow: visible; }}
figure svg * {{ stroke-linejoin: round; }}
figcaption {{ font-size: .95rem; margin-top: .7rem; max-width: 76ch; }}
.map {{ overflow-x: auto; }} .map div {{ min-width: 36rem; }}
.map svg {{ width: 102.6%; margin-left: -1.3%; }} .map div {{ overflow: hidden; }}
.map [style="fill: var(--ink)"] {{ fill: var(--wall) !important; }}
.hint {{ display: none; color: var(--soft); font-size: .85rem; margin: .3rem 0 0; }}
@media screen and (max-width: 38rem) {{ .hint {{ display: block; }} }}
:focus-visible {{ outline: 3px solid var(--advice); outline-offset: 2px; }}
.two {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr));
  gap: 1.5rem 3rem; align-items: start; }}
.two > *, .next > * {{ min-width: 0; }}
.two figure {{ margin: .6rem 0; max-width: 34rem; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; padding: 0; margin: .8rem 0 0;
  list-style: none; font-size: .95rem; }}
.spoken {{ color: var(--advice); }} .silent {{ color: var(--silence); }}
.legend b {{ font-weight: 400; }}
td strong {{ font-size: 1.15rem; color: var(--advice); }}
tbody th {{ font-weight: 600; }}
thead th, thead th.number {{ color: var(--soft); font-weight: 400; vertical-align: bottom;
  white-space: normal; }}
.whole, tbody th {{ white-space: nowrap; }}
pre {{ background: var(--code); border-radius: .5rem; padding: .8rem 1rem; overflow-x: auto;
  margin: .5rem 0 0; font-size: .9rem; line-height: 1.6; }}
code {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .92em; }}
code.long {{ overflow-wrap: anywhere; }}
.next {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr));
  gap: 2rem 3rem; margin-top: 1.5rem; }}
.next p {{ margin: 0; }}
footer {{ margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line);
  color: var(--soft); font-size: .9rem; }}
@media print {{ h2 {{ margin-top: 2rem; }} .two > *, .next > *, pre {{ break-inside: avoid; }}
  figure {{ margin: .8rem 0 1.2rem; }} pre {{ white-space: pre-wrap; }} }}
"""


def demo_page(
    players: Sequence[Player],
    *,
    map: str,
    phases: Sequence[Phase],
    penalty: float,
    notes: Sequence[str],
) -> str:
    """Return the whole page.

    Parameters
    ----------
    players
        The players.
    map
        The map that they fly over.
    phases
        The parts of the map.
    penalty
        The cost of a piece of advice, in stars.
    notes
        The settings, versions, time and files of the run.
    """
    title = _headline(players)
    parts = [
        "<header><p class='eyebrow'>Counsel: advice for people who do not always listen</p>",
        f"<h1>{escape(title)}</h1>",
        f"<p class='lead'>{escape(_lead(players, penalty))}</p></header><main>",
        _numbers(players),
        *(_flights(player, map, phases) for player in players),
        _learning(players),
        _policies(players, map),
        _frontiers(players, penalty),
        _next(),
        f"</main><footer>{''.join(f'<p>{escape(note)}</p>' for note in notes)}</footer>",
    ]
    return whole_page(title, STYLE, parts)


def _headline(players: Sequence[Player]) -> str:
    """State the finding: what the advice brings."""
    if all(player.evaluation.advice_count < 0.05 for player in players):
        return "At this price the machine stays silent: no piece of advice is worth it"
    stars = _and([_stars(player.evaluation.value) for player in players])
    alone = _and([_stars(player.alone) for player in players])
    silent = float(np.mean([player.silent_share for player in players]))
    return (
        f"Silent {_percent(silent)} of the time, the machine takes two players "
        f"from {alone} stars to {stars}"
    )


def _lead(players: Sequence[Player], penalty: float) -> str:
    episodes = players[0].episodes
    charge = f"Each piece costs {penalty:g} stars, so" if penalty > 0.0 else "Advice is free, but"
    return (
        "A machine watches two players fly across a map of stars and walls. At each step it may "
        "advise a move or stay silent, and a player takes its advice only some of the time. "
        f"{charge} it speaks only where advice pays. At first it did not know how much either "
        f"player listens; it learnt that in {episodes:,} flights with each."
    )


def _numbers(players: Sequence[Player]) -> str:
    """Return the table of what changes for each player."""
    rows = []
    for player in players:
        cells = (
            _stars(player.alone),
            f"<strong>{_stars(player.evaluation.value)}</strong>",
            _percent(player.crash_rate(player.flights_alone)),
            _percent(player.crash_rate(player.flights)),
            _stars(player.evaluation.advice_count),
            _percent(player.silent_share),
        )
        numbers = "".join(f"<td class='number'>{cell}</td>" for cell in cells)
        rows.append(f"<tr><th scope='row'>{escape(player.name)}</th>{numbers}</tr>")
    names = (
        *("player", "stars alone", "stars with advice", "crashes alone", "crashes with advice"),
        *("pieces of advice per flight", "decisions without advice"),
    )
    return table(table_head(*names, text=1), "".join(rows))


def _flights(player: Player, map: str, phases: Sequence[Phase]) -> str:
    """Return the map with the flights of one player."""
    shares = player.shares_by_phase(phases)
    where = _and([name for name, share in shares if share >= FEW])
    finding = (
        f"{player.name} hears advice {where}" if where else f"{player.name} hears no advice at all"
    )
    spread = _and([f"{_percent(share)} come {name}" for name, share in shares])
    pieces = f"{_stars(player.evaluation.advice_count)} pieces of advice per flight"
    caption = (
        f"{len(player.flights)} flights, left to right; the thicker a line, the more flights. "
        + (f"Of the {pieces}, {spread}. " if shares else "")
        + _crashes(player)
    )
    figure = draw_map(map, episodes=player.flights, legend=False)
    text = f"Map of stars and walls with {len(player.flights)} flights of {player.name}. {caption}"
    return (
        f"<section><h2 id='{player.key}'>{escape(finding)}</h2>"
        f"<p>{escape(f'{player.name} {player.habit}.')}</p>"
        f"<figure>{_map(inline_svg(figure, f'flights-{player.key}', text))}"
        f"{_legend()}<figcaption>{escape(caption)}</figcaption></figure></section>"
    )


def _crashes(player: Player) -> str:
    now, alone = (player.crash_rate(flights) for flights in (player.flights, player.flights_alone))
    if now == alone == 0.0:
        return "No flight ends in a crash, with advice or without."
    return f"{_percent(now)} of these flights end in a crash; without advice {_percent(alone)} do."


def _legend() -> str:
    signs = (
        ("spoken", "▲ ━", "the machine advised, the player did so"),
        ("spoken", "△ ━", "advised, but the player did something else"),
        ("silent", "● ╌", "the machine was silent"),
        ("silent", "✕", "a crash"),
    )
    items = "".join(
        f"<li><span class='{kind}' aria-hidden='true'>{sign}</span> <b>{text}</b></li>"
        for kind, sign, text in signs
    )
    return f"<ul class='legend'>{items}</ul>"


def _map(drawing: str) -> str:
    """Return a map, which a narrow screen scrolls sideways."""
    return (
        "<div class='map' tabindex='0' role='group' aria-label='Map'>"
        f"<div>{drawing}</div></div><p class='hint'>Scroll the map sideways.</p>"
    )


def _learning(players: Sequence[Player]) -> str:
    """Return what learning cost and what was learnt."""
    costs = _and([f"{_number(player.cost)} stars for {player.name}" for player in players])
    episodes = players[0].episodes
    sentences = [
        "Regret is the total shortfall of all flights so far against the best advice, in stars. "
        "A flat line means that nothing is lost any more. One run with each player."
    ]
    for player in players:
        standing = (
            "is as good as the best advice"
            if abs(player.gap) < SAME
            else f"is {_number(player.gap)} stars per flight short of the best advice; the "
            "smaller a loss, the more flights it takes to notice"
        )
        sentences.append(
            f"{player.name}: half of the regret was there by flight "
            f"{player.half_cost_episode:,}. After "
            f"{episodes:,} flights the advice {standing}."
        )
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    ends = _and([f"{player.name} ends at {_number(player.cost)} stars" for player in players])
    description = f"Regret against flights, 0 to {episodes:,}. {ends}."
    figure = inline_svg(_regret_chart(players), "regret", description)
    return (
        f"<section><h2 id='learning'>{escape(f'Learning cost {costs}')}</h2>"
        f"<div class='two'><figure>{figure}</figure><div>{words}</div></div>"
        f"{_listening(players)}</section>"
    )


def _listening(players: Sequence[Player]) -> str:
    """Return how much each player listens: what was seen, and the truth behind the simulation."""
    rows = [
        f"<tr><td>{escape(player.name)}</td><td>{escape(name)}</td>"
        f"<td class='number'>{_percent(share, 1)}</td>"
        f"<td class='number'>{100 * low:.1f} to {_percent(high, 1)}</td>"
        f"<td class='number'>{given:,}</td>"
        f"<td class='number'>{'varies' if truth is None else _percent(truth)}</td></tr>"
        for player in players
        for name, given, (share, low, high), truth in player.match_rates()
    ]
    if not rows:
        return ""
    names = ("player", "advice", "taken", "95 % interval", "pieces given", "in truth")
    head = table_head(*names, text=2)
    return (
        f"<h3>How much each player listens, as the machine saw it</h3>{table(head, ''.join(rows))}"
    )


def _policies(players: Sequence[Player], map: str) -> str:
    """Return what to say where."""
    counts = _and(
        [f"{p.advised_cells} of the {p.met_cells} cells that {p.name} meets" for p in players]
    )
    parts = [
        f"<section><h2 id='policy'>{escape(f'It speaks in {counts}')}</h2>",
        "<p>An arrow is the advised move (two heads for Up-Up), a grey disc is silence. Fainter "
        "marks are cells that fewer flights meet; empty cells are never met. <em>Worth</em> is "
        "what speaking there adds to a flight, in stars: how likely the advice changes the move, "
        "times how much better that move is.</p>",
    ]
    for player in players:
        figure = draw_map(map, evaluation=player.evaluation)
        text = f"Map of what the machine says to {player.name}. {_in_words(player)}"
        drawing = inline_svg(figure, f"policy-{player.key}", text)
        parts.append(f"<figure><h3>{escape(player.name)}</h3>{_map(drawing)}</figure>")
    rows = "<div class='two'>" + "".join(_reasons(player) for player in players) + "</div>"
    return "".join([*parts, rows, "</section>"])


def _reasons(player: Player) -> str:
    """Return the pieces of advice that matter most to one player."""
    rows = "".join(
        f"<tr><td class='whole'>{escape(_cell(why))}</td>"
        f"<td class='whole spoken'>▲ {escape(why.advice)}</td>"
        f"<td>{escape(_habit(why))}</td>"
        f"<td class='number'>{_percent(why.pieces)}</td>"
        f"<td class='number'>{why.gain:+.2f}</td></tr>"
        for why in player.reasons[:ROWS]
    )
    if not rows:
        return ""
    names = ("where", "advice", "alone the player goes", "flights that hear it", "worth")
    head = table_head(*names, text=3)
    return f"<div><h3>{escape(player.name)}: what matters most</h3>{table(head, rows)}</div>"


def _frontiers(players: Sequence[Player], penalty: float) -> str:
    """Return what every number of pieces of advice is worth."""
    first, *others = (f"for {player.name}" for player in players)
    shares = [_percent(player.kept_share(2.0)) for player in players]
    kept = [f"{shares[0]} of the benefit {first}"]
    kept += [f"{share} {other}" for share, other in zip(shares[1:], others, strict=True)]
    finding = f"Two pieces of advice per flight keep {_and(kept)}"
    if any(player.benefit < SAME for player in players):
        finding = "What every number of pieces of advice is worth"
    sentences = [
        "The line is the most stars that any policy can reach with so many pieces of advice per "
        "flight. Percentages are of what unlimited advice adds to flying alone."
    ]
    for player in players:
        here, always = player.evaluation, player.always
        more = "more" if here.value > always.value else "fewer"
        sentences.append(
            f"{player.name}: advice at every step takes {_stars(always.pieces)} pieces and brings "
            f"{_stars(always.value)} stars; the {_stars(here.advice_count)} pieces of the learnt "
            f"policy bring {more}, {_stars(here.value)}."
        )
    charts = "".join(
        f"<figure><h3>{escape(player.name)}</h3>"
        f"{inline_svg(_frontier_chart(player, penalty), f'frontier-{player.key}', _points(player))}"
        "</figure>"
        for player in players
    )
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f"<section><h2 id='frontier'>{escape(finding)}</h2>{words}"
        f"<div class='two'>{charts}</div></section>"
    )


def _next() -> str:
    """Return what to try next, with commands."""
    steps = (
        (
            "Play yourself",
            "Fly the bird, ignore the machine or not, and watch it find out how much you listen. "
            "Once the service runs, open 127.0.0.1:8000/play in a browser.",
            "counsel serve --demo",
        ),
        (
            "Start from a table of past decisions",
            "An example log of a hospital ward whose alarm speaks too often: who listens to what, "
            "and which one alert per shift is worth sending.",
            "counsel demo-log -o ward.csv\ncounsel fit ward.csv -o ward.npz\n"
            "counsel plan ward.npz --budget 1",
        ),
        (
            "Change the price of advice",
            "At 1 star per piece the machine says much less.",
            "counsel demo --penalty 1 -o demo-1",
        ),
        (
            "Run the paper again",
            "Every figure and every claim, at full scale, in some two minutes on two cores.",
            "counsel reproduce",
        ),
    )
    items = "".join(
        f"<div><h3>{escape(name)}</h3><p>{escape(text)}</p><pre><code>{escape(command)}"
        "</code></pre></div>"
        for name, text, command in steps
    )
    return (
        "<section><h2 id='next'>What to try next</h2>"
        "<p>The demo installs only what it runs. For the rest, in a clone run <code>make install"
        "</code>, then <code>source .venv/bin/activate</code>; elsewhere <code class='long'>"
        "pip install 'counsel[draw,logs,parquet,report,service]'</code>. The documentation begins "
        "with <code>docs/start.md</code>.</p>"
        f"<div class='next'>{items}</div></section>"
    )


def _regret_chart(players: Sequence[Player]) -> "Figure":
    figure, (axes,) = sheet(width=WIDTH, height=HEIGHT)
    looks = ((DARK_GOLD, "-"), (INK, (0, (4, 2))))
    ends = []
    for i, player in enumerate(players):
        colour, dashes = looks[i % len(looks)]
        x = [0, *(record.episode for record in player.records)]
        y = [0.0, *(record.regret for record in player.records)]
        axes.plot(x, y, color=colour, linestyle=dashes, linewidth=2.0)
        ends.append((y[-1], player.name.removeprefix("Policy "), colour))
    axes.set_xlim(0, players[0].episodes)
    axes.set_ylim(0.0, max(1.08 * max(player.cost for player in players), 1e-3))
    _finish(axes, "flights", "regret (stars)")
    label_ends(axes, ends)
    return figure


def _frontier_chart(player: Player, penalty: float) -> "Figure":
    figure, (axes,) = sheet(width=WIDTH, height=HEIGHT)
    axes.plot(*zip(*player.frontier, strict=True), color=ADVICE, linewidth=2.0, zorder=2)
    here = Point(player.evaluation.advice_count, player.evaluation.value)
    learnt = "free" if penalty == 0.0 else f"at {penalty:g} stars"
    for point, text, marker, colour, side in (
        (player.frontier[0], "never", "o", SILENCE, (9, -3)),
        (here, f"learnt, {learnt}", "^", ADVICE, (4, -16)),
        (player.frontier[-1], "unlimited", "D", DARK_GOLD, (0, 9)),
        (player.always, "every step", "v", HARM, (0, -17)),
    ):
        axes.plot(*point, marker, color=colour, markersize=8, zorder=3, clip_on=False)
        align = "right" if point is player.always else "left"
        axes.annotate(
            text,
            point,
            side,
            textcoords="offset points",
            color=INK,
            fontsize=9.5,
            ha=align,
        )
    axes.set_xlim(-0.6, 1.04 * max(player.always.pieces, player.frontier[-1].pieces, 1.0))
    axes.set_ylim(0.0, 1.15 * max(player.frontier[-1].value, player.always.value, 1.0))
    _finish(axes, "pieces of advice per flight", "stars per flight")
    return figure


def _finish(axes: "Axes", x: str, y: str) -> None:
    name_axes(axes, x, y)
    axes.tick_params(labelsize=9.5)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_fontsize(10)


def _points(player: Player) -> str:
    """Return the points of a frontier chart in words."""
    here, end, always = player.evaluation, player.frontier[-1], player.always
    return (
        f"Stars against pieces of advice per flight, {player.name}. Never: {_stars(player.alone)} "
        f"stars. Learnt: {_stars(here.value)} stars with {_stars(here.advice_count)} pieces. "
        f"Unlimited: {_stars(end.value)} with {_stars(end.pieces)}. Every step: "
        f"{_stars(always.value)} with {_stars(always.pieces)}."
    )


def _in_words(player: Player) -> str:
    advice = [f"{why.advice} in {_cell(why)}" for why in player.reasons[:ROWS]]
    return f"What matters most: {'; '.join(advice)}." if advice else "The machine is silent."


def _cell(why: Reason) -> str:
    """Return a cell as people count: column and row from 1."""
    return f"column {why.column + 1}, row {why.row + 1}"


def _habit(why: Reason) -> str:
    """Return what the player would do alone."""
    usual = sorted(((p, name) for name, p in why.habit.items() if p > 0.005), reverse=True)
    return ", ".join(name if p > 0.995 else f"{name} {_percent(p)}" for p, name in usual)


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def _stars(number: float) -> str:
    return f"{number:.1f}"


def _number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def _and(words: Sequence[str]) -> str:
    """Join words as a sentence does."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
