"""The page of ``counsel demo``: two players, when the machine advises, and what that is worth.

``demo_page`` is a pure function of the results. Pictures are inline SVG, so the page is one file
that opens offline, follows the reader's light or dark theme, and prints.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from counsel.drawing.inline_svg import inline_svg
from counsel.drawing.maps import draw_map
from counsel.estimate.intervals import wilson
from counsel.report.demo_charts import draw_frontier, draw_regret
from counsel.report.demo_player import Phase, Player, Reason
from counsel.report.page_template import COMMON_STYLE, DARK_STYLE, table, table_head, whole_page

ROWS = 6
"""Pieces of advice listed for each player."""

FEW = 0.1
"""A phase with a smaller share of the advice is not named in a heading."""

SAME = 5e-4
"""A smaller difference in stars per flight counts as none."""

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
.advised {{ color: var(--advice); }} .silent {{ color: var(--silence); }}
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
    """Return the whole page; the penalty is in stars, ``phases`` are the parts of the map."""
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
        _next_steps(),
        f"</main><footer>{_paragraphs(notes)}</footer>",
    ]
    return whole_page(title, STYLE, parts)


def _headline(players: Sequence[Player]) -> str:
    """Return the finding: the effect of the advice."""
    if all(player.learnt.pieces < 0.05 for player in players):
        return "At this price the machine stays silent: no piece of advice is worth it"
    stars = _and([_stars(player.learnt.value) for player in players])
    alone = _and([_stars(player.alone) for player in players])
    silent = float(np.mean([player.silent_share for player in players]))
    return (
        f"Silent {_percent(silent)} of the time, the machine raises two players "
        f"from {alone} stars to {stars}"
    )


def _lead(players: Sequence[Player], penalty: float) -> str:
    episodes = players[0].records[-1].episode
    price = f"Each piece costs {penalty:g} stars, so" if penalty > 0.0 else "Advice is free, but"
    return (
        "A machine watches two players fly across a map of stars and walls. At each step it may "
        "advise a move or stay silent, and a player takes its advice only some of the time. "
        f"{price} the machine advises only where advice pays. At first it does not know how much "
        f"either player listens; it learns that in {episodes:,} flights with each."
    )


def _numbers(players: Sequence[Player]) -> str:
    """Return the table of effects on each player."""
    rows = []
    for player in players:
        cells = (
            _stars(player.alone),
            f"<strong>{_stars(player.learnt.value)}</strong>",
            _percent(player.crash_share(player.flights_alone)),
            _percent(player.crash_share(player.flights)),
            _stars(player.learnt.pieces),
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
    shares = player.advice_by_phase(phases)
    where = _and([name for name, share in shares if share >= FEW])
    finding = f"{player.name} hears " + (f"advice {where}" if where else "no advice at all")
    spread = _and([f"{_percent(share)} come {name}" for name, share in shares])
    pieces = f"{_stars(player.learnt.pieces)} pieces of advice per flight"
    caption = (
        f"{len(player.flights)} flights, from left to right; the thicker a line, the more flights. "
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
    now, alone = (player.crash_share(f) for f in (player.flights, player.flights_alone))
    if now == alone == 0.0:
        return "No flight ends in a crash, with advice or without."
    return f"{_percent(now)} of these flights end in a crash; without advice {_percent(alone)} do."


def _legend() -> str:
    signs = (
        ("advised", "▲ ━", "the player took the advice"),
        ("advised", "△ ━", "the player did something else"),
        ("silent", "● ╌", "the machine was silent"),
        ("silent", "✕", "a crash"),
    )
    items = "".join(
        f"<li><span class='{kind}' aria-hidden='true'>{sign}</span> <b>{text}</b></li>"
        for kind, sign, text in signs
    )
    return f"<ul class='legend'>{items}</ul>"


def _map(drawing: str) -> str:
    """Return a map, which scrolls sideways on a narrow screen."""
    return (
        "<div class='map' tabindex='0' role='group' aria-label='Map'>"
        f"<div>{drawing}</div></div><p class='hint'>Scroll the map sideways.</p>"
    )


def _learning(players: Sequence[Player]) -> str:
    """Return the cost of learning, and what was learnt."""
    costs = _and([f"{_number(player.cost)} stars for {player.name}" for player in players])
    episodes = players[0].records[-1].episode
    sentences = [
        "Regret is the total shortfall of all flights so far against the best advice, in stars. "
        "Where the line is flat, the advice is the best. The chart shows one run with each player."
    ]
    for player in players:
        standing = (
            "is as good as the best advice"
            if abs(player.gap) < SAME
            else f"is {_number(player.gap)} stars per flight short of the best advice; the "
            "smaller the loss, the more flights it takes to notice"
        )
        sentences.append(
            f"{player.name}: half of the regret occurred by flight {player.half_cost_flight:,}. "
            f"After {episodes:,} flights the advice {standing}."
        )
    ends = _and([f"{player.name} ends at {_number(player.cost)} stars" for player in players])
    description = f"Regret against flights, 0 to {episodes:,}. {ends}."
    figure = inline_svg(draw_regret(players), "regret", description)
    return (
        f"<section><h2 id='learning'>{escape(f'Learning cost {costs}')}</h2>"
        f"<div class='two'><figure>{figure}</figure><div>{_paragraphs(sentences)}</div></div>"
        f"{_matches(players)}</section>"
    )


def _matches(players: Sequence[Player]) -> str:
    """Return the table of matches: what the machine observed, and the true adherence."""
    rows = []
    for player in players:
        if player.matches is None:
            continue
        matched, given = player.matches
        low, high = wilson(matched.astype(float), given.astype(float))
        names = player.problem.mdp.action_labels or [str(a) for a in range(given.size)]
        for a in np.flatnonzero(given):
            theta = player.problem.human.adherence[..., a]
            truth = _percent(theta.max()) if np.ptp(theta) < 1e-9 else "varies"
            rows.append(
                f"<tr><td>{escape(player.name)}</td><td>{escape(names[a])}</td>"
                f"<td class='number'>{_percent(matched[a] / given[a], 1)}</td>"
                f"<td class='number'>{100 * low[a]:.1f} to {_percent(high[a], 1)}</td>"
                f"<td class='number'>{given[a]:,}</td><td class='number'>{truth}</td></tr>"
            )
    if not rows:
        return ""
    names = ("player", "advice", "matched", "95 % interval", "pieces", "true adherence")
    head = table_head(*names, text=2)
    return f"<h3>How much each player listens, as observed</h3>{table(head, ''.join(rows))}"


def _policies(players: Sequence[Player], map: str) -> str:
    """Return the learnt advice in each cell."""
    sentence = "{} of the {} cells that {} reaches"
    counts = _and([sentence.format(*player.cells, player.name) for player in players])
    parts = [
        f"<section><h2 id='policy'>{escape(f'The machine advises in {counts}')}</h2>",
        "<p>An arrow is the advised move (two heads for Up-Up), a grey disc is silence. Marks are "
        "fainter in cells that fewer flights reach; no flight reaches an empty cell. "
        "<em>Worth</em> is what the advice adds to a flight, in stars: the probability that it "
        "changes the move, times how much better the advised move is.</p>",
    ]
    for player in players:
        figure = draw_map(map, evaluation=player.evaluation)
        text = f"Map of the advice for {player.name}. {_reasons_in_words(player)}"
        drawing = inline_svg(figure, f"policy-{player.key}", text)
        parts.append(f"<figure><h3>{escape(player.name)}</h3>{_map(drawing)}</figure>")
    rows = "<div class='two'>" + "".join(_reasons(player) for player in players) + "</div>"
    return "".join([*parts, rows, "</section>"])


def _reasons(player: Player) -> str:
    """Return the most valuable pieces of advice for one player."""
    rows = "".join(
        f"<tr><td class='whole'>{escape(_cell(reason))}</td>"
        f"<td class='whole advised'>▲ {escape(reason.advice)}</td>"
        f"<td>{escape(_habit(reason))}</td>"
        f"<td class='number'>{_percent(reason.pieces)}</td>"
        f"<td class='number'>{reason.gain:+.2f}</td></tr>"
        for reason in player.reasons[:ROWS]
    )
    if not rows:
        return ""
    names = ("cell", "advice", "move without advice", "flights that hear it", "worth")
    head = table_head(*names, text=3)
    return f"<div><h3>{escape(player.name)}: most valuable advice</h3>{table(head, rows)}</div>"


def _frontiers(players: Sequence[Player], penalty: float) -> str:
    """Return the value of every number of pieces of advice."""
    first, *others = (f"for {player.name}" for player in players)
    shares = [_percent(player.benefit_share(2.0)) for player in players]
    kept = [f"{shares[0]} of the benefit {first}"]
    kept += [f"{share} {other}" for share, other in zip(shares[1:], others, strict=True)]
    finding = f"Two pieces of advice per flight keep {_and(kept)}"
    if any(player.benefit < SAME for player in players):
        finding = "The value of every number of pieces of advice"
    sentences = [
        "The line is the most stars that any policy can reach with so many pieces of advice per "
        "flight. The benefit is what unlimited advice adds to flying alone."
    ]
    for player in players:
        learnt, always = player.learnt, player.always
        more = "more" if learnt.value > always.value else "fewer"
        sentences.append(
            f"{player.name}: advice at every step takes {_stars(always.pieces)} pieces and yields "
            f"{_stars(always.value)} stars; the {_stars(learnt.pieces)} pieces of the learnt "
            f"policy yield {more}, {_stars(learnt.value)}."
        )
    charts = "".join(
        f"<figure><h3>{escape(player.name)}</h3>"
        + inline_svg(draw_frontier(player, penalty), f"frontier-{player.key}", _points(player))
        + "</figure>"
        for player in players
    )
    return (
        f"<section><h2 id='frontier'>{escape(finding)}</h2>{_paragraphs(sentences)}"
        f"<div class='two'>{charts}</div></section>"
    )


def _next_steps() -> str:
    """Return what to try next, with commands."""
    steps = (
        (
            "Play yourself",
            "Fly the bird, take the advice or ignore it, and watch the machine learn how much you "
            "listen. When the service runs, open 127.0.0.1:8000/play in a browser.",
            "counsel serve --demo",
        ),
        (
            "Start from a table of past decisions",
            "An example log of a hospital ward whose alarm alerts too often: how much nurses "
            "listen to each alert, and which alert per shift is worth sending.",
            "counsel demo-log -o ward.csv\ncounsel fit ward.csv -o ward.npz\n"
            "counsel plan ward.npz --budget 1",
        ),
        (
            "Change the price of advice",
            "At 1 star per piece the machine advises much less.",
            "counsel demo --penalty 1 -o demo-1",
        ),
        (
            "Reproduce the paper",
            "Every figure and every claim, at full scale, in about two minutes on two cores.",
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
        "<p>The demo installs only what it needs. For the rest, in a clone run <code>make install"
        "</code>, then <code>source .venv/bin/activate</code>; elsewhere <code class='long'>"
        "pip install 'counsel[draw,logs,parquet,report,service]'</code>. The documentation begins "
        "with <code>docs/start.md</code>.</p>"
        f"<div class='next'>{items}</div></section>"
    )


def _points(player: Player) -> str:
    """Return the points of a frontier chart in words."""
    learnt, end, always = player.learnt, player.frontier[-1], player.always
    return (
        f"Stars against pieces of advice per flight, {player.name}. Never: {_stars(player.alone)} "
        f"stars. Learnt: {_stars(learnt.value)} stars with {_stars(learnt.pieces)} pieces. "
        f"Unlimited: {_stars(end.value)} with {_stars(end.pieces)}. Every step: "
        f"{_stars(always.value)} with {_stars(always.pieces)}."
    )


def _reasons_in_words(player: Player) -> str:
    words = [f"{reason.advice} in {_cell(reason)}" for reason in player.reasons[:ROWS]]
    return f"Most valuable: {'; '.join(words)}." if words else "The machine is silent."


def _cell(reason: Reason) -> str:
    """Return the cell in words, with column and row counted from 1."""
    return f"column {reason.column + 1}, row {reason.row + 1}"


def _habit(reason: Reason) -> str:
    """Return what the player would do without advice."""
    usual = sorted(((p, name) for name, p in reason.habit.items() if p > 0.005), reverse=True)
    return ", ".join(name if p > 0.995 else f"{name} {_percent(p)}" for p, name in usual)


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def _stars(number: float) -> str:
    return f"{number:.1f}"


def _number(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def _and(words: Sequence[str]) -> str:
    """Join words with commas and "and"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
