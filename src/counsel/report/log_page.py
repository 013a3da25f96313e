"""The report of a log: one page for whoever decides, that opens offline, hovers and prints.

``log_page`` is a pure function of a study. Charts are Plotly's, its script is in the page, and the
page's own policy forbids it to ask any host for anything. Labels of the log are shown as text,
whatever they hold. People are shown as a distribution, never by name.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import quote

import numpy as np

from counsel.drawing.palette import ADVICE
from counsel.errors import CounselError
from counsel.estimate.intervals import wilson
from counsel.logs.adherence_breakdown import Trend, by_advice, by_state, overall
from counsel.logs.evaluate_log import Judged, Worth
from counsel.logs.plan import ranked_entries
from counsel.logs.report_contents import Study
from counsel.report.log_charts import (
    MOST_ROWS,
    Chart,
    criticality_chart,
    frontier_chart,
    people_chart,
    share_chart,
    trend_chart,
)
from counsel.report.page_template import COMMON_STYLE, table, whole_page

STYLE = f"""{COMMON_STYLE}
.three {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1.5rem;
  margin: 1.5rem 0; }}
.three b {{ display: block; font-size: 2rem; line-height: 1.2; color: {ADVICE}; }}
.three span {{ display: block; font-size: .92rem; }}
.chart {{ width: 100%; }}
.data {{ font-size: .85rem; margin: 0 0 1rem; }}
.bar {{ display: inline-block; height: .7rem; background: {ADVICE}; vertical-align: baseline; }}
@media print {{ h2 + p {{ break-after: avoid; }} .chart, .three {{ break-inside: avoid; }}
  .data, .modebar {{ display: none; }} }}
"""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


PutChart = Callable[[Chart | None], str]
"""Puts a chart on the page and returns its place."""


def log_page(found: Study, weighed: tuple[Judged, str | None]) -> str:
    """Return the whole page.

    Parameters
    ----------
    found
        What the model says.
    weighed
        What the episodes of the log say of its plan, or why they cannot tell: ``evaluate.weigh``.
    """
    charts: list[Chart] = []

    def put(chart: Chart | None) -> str:
        if chart is None:
            return ""
        charts.append(chart)
        return _chart(chart)

    body = [
        f"<h1>{escape(_headline(found))}</h1><p class='lead'>{escape(_lead(found))}</p>",
        f"<p>{escape(_confirmed(*weighed))}</p>",
        _three(found),
        *_pays(found, put),
        *_frontier(found, put),
        *_listening(found, put),
        *_limits(found),
        _method(found),
    ]
    figures = {chart.name: {"data": chart.traces, "layout": chart.layout} for chart in charts}
    body += [
        f"<script>const figures = {_script(figures)};",
        "for (const [name, figure] of Object.entries(figures))",
        "  Plotly.newPlot(name, figure.data, figure.layout,",
        "    {displaylogo: false, responsive: true, modeBarButtons:",
        "     [['toImage', 'zoom2d', 'pan2d', 'resetScale2d']]});</script>",
    ]
    return whole_page(_headline(found), STYLE, body, policy=POLICY, script=_plotly())


def _plotly() -> str:
    """Return Plotly's script from its package."""
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        raise CounselError(
            "reports need Plotly; install it with: pip install 'counsel[report]'"
        ) from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _headline(found: Study) -> str:
    """Say what was found, not what was looked at."""
    if not found.fit.estimates.given.any():
        return "No advice was ever seen: this log cannot say who would listen"
    if math.isnan(found.share) or found.worth.value <= 0.0:
        return "Nothing in this log shows that advice would help"
    pieces = _pieces(found.planned.plan.advice_count)
    keeps = "keeps" if pieces.startswith("1 ") else "keep"
    return f"{pieces} an episode {keeps} {found.share:.0%} of what unlimited advice is worth"


def _lead(found: Study) -> str:
    fit = found.fit
    today = (
        f"Today {_short(fit.logged_pieces)} are sent and an episode brings "
        f"{_worth(found.logged)}; without advice it would bring {_worth(found.alone)}, with the "
        f"plan below {_worth(found.chosen)}."
    )
    checked = fit.checked
    who = "" if checked.people is None else f" by {checked.people:,} people"
    return (
        f"{today} From {checked.rows:,} decisions{who} in {checked.episodes:,} episodes. Square "
        "brackets are 95 % intervals over resampled episodes."
    )


def _confirmed(judged: Judged, refusal: str | None) -> str:
    """Say whether the log bears the plan's worth out without the model."""
    if refusal is not None or judged.weighted is None or judged.doubly_robust is None:
        return (
            "What the plan brings rests on the fitted model. The log by itself cannot confirm it: "
            f"{refusal}."
        )
    return (
        "What the plan brings is worked out in the fitted model. Without trusting it, by weighting "
        f"the episodes that went as the plan would have had them ({judged.effective:,.0f} of them "
        f"count), the log says {_worth(judged.weighted)}; by both together "
        f"{_worth(judged.doubly_robust)}."
    )


def _three(found: Study) -> str:
    """Return the three numbers that are asked for first."""
    whole = overall(found.fit.estimates)
    if whole.given[0]:
        low, high = wilson(whole.matched, whole.given)
        listen = f"{whole.matched[0] / whole.given[0]:.0%}"
        told = (
            f"of the advice that is seen is matched [{low[0]:.0%}, {high[0]:.0%}], "
            f"{_share(whole.anyway_share[0])} would have been anyway; "
            f"{whole.given[0]:,.0f} pieces"
        )
    else:
        listen, told = "–", "no advice was seen"
    worth = found.worth
    sent = _short(found.fit.logged_pieces)
    return (
        f"<div class='three'><div><b>{listen}</b><span>{escape(told)}</span></div>"
        f"<div><b>{worth.value:+.3g}</b><span>what the plan adds to an episode: "
        f"{escape(_signed(worth))}</span></div>"
        f"<div><b>{sent}</b><span>pieces of advice an episode today; the plan sends "
        f"{_short(found.planned.plan.advice_count)} (limit: {escape(found.limit)})</span></div>"
        "</div>"
    )


def _pays(found: Study, put: PutChart) -> Iterator[str]:
    """Say where advice pays: a ranked table and a heat map."""
    entries = ranked_entries(found.planned)
    if not entries:
        yield "<h2>Nothing is advised: silence is best as far as the data can tell</h2>"
        return
    first = entries[0]
    yield f"<h2>Advice pays most in “{escape(first.state)}”: advise “{escape(first.advice)}”</h2>"
    yield (
        "<p>Criticality is what a piece of advice may cost and still be worth sending. Support is "
        "how often that advice was seen there.</p>"
    )
    most = max(entry.gain for entry in entries) or 1.0
    body = "".join(
        f"<tr><td>{escape(state)}</td><td>{escape(advice)}</td><td>{escape(steps)}</td>"
        f"<td class='number'>{_short(gain)} {_bar(gain / most)}</td>"
        f"<td class='number'>{_short(lift)}</td><td class='number'>{_short(critical)}</td>"
        f"<td class='number'>{support:,}</td></tr>"
        for state, advice, steps, gain, lift, critical, support in entries[:MOST_ROWS]
    )
    names = ("in state", "advise", "at steps")
    head = "".join(f"<th>{name}</th>" for name in names)
    head += "".join(
        f"<th class='number'>{name}</th>" for name in ("gain", "lift", "criticality", "support")
    )
    yield table(head, body)
    if len(entries) > MOST_ROWS:
        more = f"… and {len(entries) - MOST_ROWS:,} more"
        yield f"<p>{more}; <code>counsel plan</code> writes all.</p>"
    yield put(criticality_chart(found))


def _bar(share: float) -> str:
    return f"<span class='bar' style='width:{5.0 * share:.2f}rem'></span>"


def _frontier(found: Study, put: PutChart) -> Iterator[str]:
    """Say what a budget buys."""
    share = "" if math.isnan(found.share) else f", {found.share:.0%} of all there is to gain"
    yield (
        f"<h2>{escape(_pieces(found.planned.plan.advice_count))} an episode "
        f"{'brings' if _pieces(found.planned.plan.advice_count).startswith('1 ') else 'bring'} "
        f"{escape(_signed(found.worth))}{escape(share)}</h2>"
    )
    yield (
        "<p>Every point of the line is the best plan for that many pieces of advice; the band is "
        "its 95 % interval. The diamond is the log itself, which was measured, not planned.</p>"
    )
    yield put(frontier_chart(found))


def _listening(found: Study, put: PutChart) -> Iterator[str]:
    """Say how much people listen, by advice, by state, over time and from person to person."""
    fit = found.fit
    if not fit.estimates.given.any():
        return
    advice = by_advice(fit.estimates)
    heard = np.where(np.isfinite(advice.error), advice.lift, -np.inf)
    best = int(heard.argmax())
    if np.isfinite(heard[best]):
        yield (
            f"<h2>“{escape(advice.keys[best])}” moves most: {advice.lift[best]:.0%} of those who "
            "would have done otherwise</h2>"
        )
    else:
        yield "<h2>How much advice moves people cannot be told</h2>"
    yield (
        "<p>Matched is how often people did what was advised. The grey mark is how often they "
        "would have done it anyway; the distance between the two is what advice moves.</p>"
    )
    yield put(share_chart("by-advice", advice))
    yield "<h2>How much people listen by state</h2>"
    yield put(share_chart("by-state", by_state(fit.estimates)))
    if fit.over_time is not None:
        per = "from the first day to the last"
        yield f"<h2>{escape(_changes(fit.over_time, 'over time', per))}</h2>"
        yield put(trend_chart("over-time", fit.over_time, "time"))
    if fit.over_advice is not None:
        per = "for each piece already given in the episode"
        yield f"<h2>{escape(_changes(fit.over_advice, 'as advice piles up', per))}</h2>"
        yield put(trend_chart("over-advice", fit.over_advice, "pieces of advice already given"))
    if fit.people is not None:
        low, high = np.quantile(fit.people.lift, (0.1, 0.9))
        yield (
            f"<h2>People differ: eight in ten of {len(fit.people.by.keys):,} have a lift between "
            f"{low:.2f} and {high:.2f}</h2>"
            "<p>Each person's own data, leaning on everybody's where there are few.</p>"
        )
        yield put(people_chart(fit.people.lift))


def _changes(trend: Trend, when: str, per: str) -> str:
    """Say whether listening changes."""
    ends = f"{trend.slope:+.2g} [{trend.slope_low:+.2g}, {trend.slope_high:+.2g}] {per}"
    if trend.slope_low <= 0.0 <= trend.slope_high:
        return f"No change in listening can be told {when}: {ends}"
    way = "more" if trend.slope > 0.0 else "less"
    return f"People listen {way} {when}: lift {ends}"


def _limits(found: Study) -> Iterator[str]:
    """Say what the data cannot tell, and what rests on what."""
    fit = found.fit
    yield "<h2>What the data cannot tell</h2>"
    notes = [*fit.notes, *(one for one in fit.checked.findings if one.count)]
    lines = []
    for note in notes:
        some = f" ({'; '.join(note.examples)})" if note.examples else ""
        lines.append(f"{note.count:,} {note.what}{some}" if note.count else f"{note.what}{some}")
    law = fit.law
    if law is None:
        lines.append(
            "Whether people who refuse do what they would have done anyway cannot be tested here "
            "(that takes three actions, refusals and silence)."
        )
    elif law.holds:
        lines.append(
            f"Nothing speaks against people who refuse doing what they would have done anyway "
            f"({law.refusals:,} refusals, p = {law.p_value:.2g})."
        )
    else:
        lines.append(
            f"People who refuse do not do what they would have done anyway (p = {law.p_value:.2g}; "
            f"refusing {law.advice} in {law.state}, {law.share:.0%} take {law.action} where "
            f"{law.expected:.0%} were to be expected): gains are rough."
        )
    lines.append(
        "All of this assumes that who was advised did not depend on anything that is not recorded. "
        "If it did, what the plan adds lies in the range below."
    )
    yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
    rows = "".join(
        f"<tr><td>{'not at all' if one.odds == 1.0 else f'odds up to {one.odds:g} times'}</td>"
        f"<td class='number'>{one.low:+.3g} to {one.high:+.3g}</td></tr>"
        for one in found.sensitivity
    )
    yield table(
        "<th>how far those who were advised differ in what they would have done anyway</th>"
        "<th class='number'>what the plan adds to an episode</th>",
        rows,
    )


def _method(found: Study) -> str:
    tally = found.fit.tally
    pooled = "for each step on its own" if tally.by_step else "pooled over steps"
    sentences = (
        f"What follows a decision and what it pays are shares and means of the log, {pooled}.",
        "What people do alone is estimated from silence and from refusals, which by the adherence "
        "law are draws from their habit without the advised action.",
        "Lift is the share of those who would have done otherwise that the advice moves; where "
        "data are thin it leans on the same advice elsewhere.",
        "The plan is the exact optimum of the fitted model within the limit.",
        "Intervals come from drawing episodes with replacement and doing all of it again.",
    )
    return f"<h2>Method</h2><p>{escape(' '.join(sentences))}</p>"


def _chart(chart: Chart) -> str:
    """Return the place of a chart, and its numbers to take away."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(chart.columns)
    writer.writerows([_safe(value) for value in row] for row in chart.rows)
    data = quote(text.getvalue())
    return (
        f"<div class='chart' id='{chart.name}'></div><p class='data'>"
        f"<a download='{chart.name}.csv' href='data:text/csv;charset=utf-8,{data}'>numbers (CSV)"
        "</a></p>"
    )


def _safe(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def _script(value: object) -> str:
    """Return JSON that cannot end its script."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _share(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else "nobody knows how much"


def _short(number: float) -> str:
    return f"{number:.3g}"


def _pieces(count: float) -> str:
    shown = _short(count)
    return f"{shown} piece{'' if shown == '1' else 's'} of advice"


def _worth(worth: Worth) -> str:
    if not math.isfinite(worth.low):
        return f"{worth.value:.4g} [too few episodes]"
    return f"{worth.value:.4g} [{worth.low:.4g}, {worth.high:.4g}]"


def _signed(worth: Worth) -> str:
    if not math.isfinite(worth.low):
        return f"{worth.value:+.3g} [too few episodes]"
    return f"{worth.value:+.3g} [{worth.low:+.3g}, {worth.high:+.3g}]"
