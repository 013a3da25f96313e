"""The report of a log: a page for decision makers that opens offline, is interactive and prints.

``log_page`` is a pure function of the report's contents. Plotly draws the charts; its script is in
the page, and the page's content security policy forbids every request. Labels of the log are shown
as text, whatever they contain. People are shown as a distribution, never by name.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import quote

from counsel.errors import CounselError
from counsel.logs.adherence_breakdown import by_advice, by_state, overall
from counsel.logs.plan_table import ranked_entries
from counsel.logs.report_contents import ReportContents
from counsel.report import findings
from counsel.report.log_charts import (
    MOST_ROWS,
    NIGHTS,
    Chart,
    breakdown_chart,
    criticality_chart,
    fading_chart,
    frontier_chart,
    people_chart,
    trend_chart,
)
from counsel.report.number_format import short
from counsel.report.page_template import COMMON_STYLE, DARK_STYLE, table, table_head, whole_page

STYLE = f"""{COMMON_STYLE}{DARK_STYLE}
.three {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1.5rem;
  margin: 1.5rem 0; }}
.three b {{ display: block; font-size: 2rem; line-height: 1.2; color: var(--advice); }}
.three span {{ display: block; font-size: .92rem; }}
.chart {{ width: 100%; }}
.data {{ font-size: .85rem; margin: 0 0 1rem; }}
.check {{ border: 1px solid var(--line); border-left: 4px solid var(--advice);
  padding: 0 1.25rem .75rem; margin: 2rem 0; }}
.check h2 {{ font-size: 1.15rem; margin-top: 1rem; }}
.check tr:last-child td {{ border-bottom: 0; }}
.bar {{ display: inline-block; height: .7rem; background: var(--advice);
  vertical-align: baseline; }}
@media print {{ h2 + p {{ break-after: avoid; }} .chart, .three {{ break-inside: avoid; }}
  .data, .modebar {{ display: none; }} }}
"""

DRAW_CHARTS = """
const draw = (dark) => {
  let text = JSON.stringify(figures);
  for (const [light, night] of Object.entries(dark ? nights : {}))
    text = text.replaceAll(light, night);
  const narrow = innerWidth < 600;
  if (narrow) text = text.replaceAll('"markers+text"', '"markers"');
  for (const [name, figure] of Object.entries(JSON.parse(text))) {
    if (narrow && name === 'frontier') figure.layout.showlegend = true;
    Plotly.react(name, figure.data, figure.layout, {displaylogo: false, responsive: true,
      modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'resetScale2d']]});
  }
};
const dark = matchMedia('(prefers-color-scheme: dark)');
draw(dark.matches);
dark.addEventListener('change', () => draw(dark.matches));
addEventListener('beforeprint', () => draw(false));
addEventListener('afterprint', () => draw(dark.matches));
"""
"""Draws the charts in the reader's theme, and in the light one on paper. Where there is no room for
names beside the points, a legend has them."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)

PutChart = Callable[[Chart | None], str]
"""Adds a chart to the page and returns its markup."""

METHOD = (
    "Outcomes and rewards of decisions are shares and means of the log, {pooled}.",
    "What people do without advice is estimated from silence and from refusals, which by the "
    "adherence law are draws from their habit without the advised action.",
    "Lift is the share of the people who would have done otherwise that the advice moves; where "
    "data are thin it is pooled with the same advice in other states.",
    "The plan is the exact optimum of the fitted model within the limit. What it is worth is "
    "cross-fitted: each half of the people has its own model and plan, judged on the other half.",
    "Intervals come from drawing people (episodes, if the log names no people) with replacement "
    "and repeating every estimate.",
)


def log_page(contents: ReportContents) -> str:
    """Return the whole page."""
    charts: list[Chart] = []

    def put(chart: Chart | None) -> str:
        if chart is None:
            return ""
        charts.append(chart)
        return _chart(chart)

    headline = findings.headline(contents)
    believed = contents.fit.is_trusted and not contents.is_disputed
    body = [
        f"<h1>{escape(headline)}</h1><p class='lead'>{escape(findings.lead(contents))}</p>",
        _three_numbers(contents),
        *_known(contents),
        *((*_advice(contents, put), *_frontier(contents, put)) if believed else ()),
        *_listening(contents, put),
        *_memory(contents, put),
        *_limitations(contents),
        _method(contents),
    ]
    figures = {chart.name: {"data": chart.traces, "layout": chart.layout} for chart in charts}
    constants = f"const figures = {_script(figures)}, nights = {_script(NIGHTS)};"
    body.append(f"<script>{constants}{DRAW_CHARTS}</script>")
    return whole_page(headline, STYLE, body, policy=POLICY, script=_plotly())


def _known(contents: ReportContents) -> Iterator[str]:
    """Yield what is known without a model, what the model adds, and whether they agree."""
    yield "<h2>What is known without a model</h2>"
    for line in findings.without_model(contents):
        yield f"<p>{escape(line)}</p>"
    yield f"<h2>What the model adds</h2><p>{escape(findings.with_model(contents))}</p>"
    rows = "".join(
        f"<tr><td>{escape(what)}</td><td>{escape(verdict)}</td><td>{escape(evidence)}</td></tr>"
        for what, verdict, evidence in map(findings.assumption_cells, contents.fit.assumptions)
    )
    yield f"<section class='check'><h2>{escape(findings.agreement(contents))}</h2>"
    for line in findings.model_and_log(contents.fit):
        yield f"<p>{escape(line)}</p>"
    if rows:
        yield table(table_head("the model takes for granted that", "the log", "test", text=3), rows)
    yield "</section>"


def _plotly() -> str:
    """Return Plotly's script from its package."""
    try:
        from plotly.offline import get_plotlyjs
    except ModuleNotFoundError:
        raise CounselError(
            "reports need Plotly; install it with: pip install 'counsel[report]'"
        ) from None
    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _three_numbers(contents: ReportContents) -> str:
    """Return the three numbers that readers ask for first."""
    plan = contents.plan
    limit = findings.plan_limit(plan)
    today = "pieces of advice per episode today"
    sends = short(plan.plan.advice_count)
    if plan.logged_cost is not None and plan.advice_cost is not None:
        today = f"pieces of advice that cost {short(plan.logged_cost)} per episode today"
        sends += f" that cost {short(plan.advice_cost)}"
    gain, beyond = contents.gain, "reward per episode that the plan brings beyond today"
    numbers = (
        ("–", f"{beyond}: cannot be told")
        if gain is None or contents.is_disputed
        else (f"{gain.value:+.3g}", f"{beyond} {findings.interval(gain)}"),
        findings.match_rate_details(overall(contents.fit.tally, contents.fit.estimates)),
        (
            short(contents.fit.logged_pieces),
            f"{today}; the plan sends {sends} (limit: {limit})"
            if contents.fit.is_trusted
            else today,
        ),
    )
    cells = (f"<div><b>{n}</b><span>{escape(text)}</span></div>" for n, text in numbers)
    return f"<div class='three'>{''.join(cells)}</div>"


def _advice(contents: ReportContents, put: PutChart) -> Iterator[str]:
    """Yield where advice pays: a ranked table and a heat map."""
    entries = ranked_entries(contents.plan)
    if not entries:
        yield f"<h2>{escape(findings.plan_silence(contents.plan))}</h2>"
        return
    yield f"<h2>{escape(findings.where_advice_pays(entries))}</h2>"
    has_costs = contents.plan.has_costs
    criticality = "the largest cost of a piece of advice at which it is still worth sending"
    if has_costs:
        criticality = "the largest penalty per unit of cost at which advice is still worth sending"
    yield (
        f"<p>Criticality is {criticality}. Support is how often that advice was seen in that "
        "state.</p>"
    )
    largest = max((entry.gain for entry in entries if entry.is_known), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(state)}</td><td>{escape(advice)}</td><td>{escape(steps)}</td>"
        f"{_number_cells(cost) if has_costs else ''}"
        f"<td class='number'>{findings.number_or_unknown(gain)} {_bar(gain / largest)}</td>"
        f"{_number_cells(lift, critical)}"
        f"<td class='number'>{support:,}</td></tr>"
        for state, advice, steps, gain, lift, critical, support, cost in entries[:MOST_ROWS]
    )
    names = ("gain", "lift", "criticality", "support")
    costs = ("cost",) if has_costs else ()
    yield table(table_head("in state", "advise", "at steps", *costs, *names, text=3), rows)
    if len(entries) > MOST_ROWS:
        more = f"… and {len(entries) - MOST_ROWS:,} more"
        yield f"<p>{more}; <code>counsel plan</code> writes all.</p>"
    yield put(criticality_chart(contents))


def _number_cells(*numbers: float) -> str:
    cells = map(findings.number_or_unknown, numbers)
    return "".join(f"<td class='number'>{cell}</td>" for cell in cells)


def _bar(share: float) -> str:
    if math.isnan(share):
        return ""
    return f"<span class='bar' style='width:{5.0 * share:.2f}rem'></span>"


def _frontier(contents: ReportContents, put: PutChart) -> Iterator[str]:
    """Yield what every budget buys."""
    yield f"<h2>{escape(findings.frontier_finding(contents))}</h2>"
    if contents.plan.keeps_all:
        return
    what = "that cost of advice" if contents.plan.has_costs else "that many pieces of advice"
    yield (
        f"<p>Every point of the line is the best plan for {what}; the band is "
        "its 95 % interval. The diamond is the log itself, which was measured, not planned.</p>"
    )
    yield put(frontier_chart(contents))


def _listening(contents: ReportContents, put: PutChart) -> Iterator[str]:
    """Yield how much people listen, by advice, by state, over time and by person."""
    fit = contents.fit
    if not fit.estimates.given.any():
        return
    advice = by_advice(fit.tally, fit.estimates)
    yield f"<h2>{escape(findings.strongest_advice(advice))}</h2>"
    yield (
        "<p>Matched is how often people did what was advised. The grey mark is how often they "
        "would have done it anyway; the distance between the two is the effect of advice.</p>"
    )
    yield put(breakdown_chart("by-advice", advice))
    yield "<h2>How much people listen by state</h2>"
    yield put(breakdown_chart("by-state", by_state(fit.tally, fit.estimates)))
    if fit.over_time is not None:
        yield f"<h2>{escape(findings.time_trend(fit.over_time))}</h2>"
        yield put(trend_chart("over-time", fit.over_time, "share of the time in the log"))
    if fit.over_advice is not None:
        yield f"<h2>{escape(findings.advice_trend(fit.over_advice))}</h2>"
        yield put(trend_chart("over-advice", fit.over_advice, "pieces of advice already given"))
    if fit.people is not None:
        yield f"<h2>{escape(findings.people_differ(fit.people))}</h2>"
        if fit.people.differ:
            yield (
                "<p>Each person is compared with their own silence. Their lift is partially "
                "pooled: it relies on everybody's data where the person's own are few.</p>"
            )
            yield put(people_chart(fit.people.lift))


def _memory(contents: ReportContents, put: PutChart) -> Iterator[str]:
    """Yield whether people tire: what was compared, and the lift at each level."""
    fit = contents.fit
    lines = list(findings.memory_findings(fit))
    if not lines:
        return
    yield f"<h2>{escape(findings.memory_headline(fit))}</h2>"
    for line in lines:
        yield f"<p>{escape(line)}</p>"
    if contents.memory is not None:
        yield f"<p>{escape(findings.memory_worth(contents.memory))}</p>"
    if fit.fading is not None:
        yield put(fading_chart(fit.fading))
    tests = fit.memories
    if tests is None or not tests.tests:
        return
    rows = "".join(
        f"<tr><td>{escape(test.kind.words)}</td><td>{escape(by)}</td>"
        f"<td>{escape(findings.kind_levels(test))}</td><td>{escape(p)}</td>"
        f"<td>{escape(verdict)}</td><td class='number'>{escape(likelihood)}</td></tr>"
        for test in tests.tests
        for _, by, p, verdict, likelihood in [findings.memory_cells(test, tests)]
    )
    yield (
        "<p>All kinds of memory were compared on the same pieces of advice. p is corrected for all "
        "of them; the log likelihood says by how much a kind explains the log better than "
        "none.</p>"
    )
    head = ("lift changes with", "lift is multiplied by", "lift left, rested first")
    yield table(table_head(*head, "test", "verdict", "log likelihood", text=5), rows)


def _limitations(contents: ReportContents) -> Iterator[str]:
    """Yield what the data cannot tell, and the sensitivity to unrecorded facts."""
    fit = contents.fit
    yield "<h2>What the data cannot tell</h2>"
    warnings = (finding for finding in fit.check.findings if finding.count)
    by_topic = {re.split("[:;]", finding.what)[0]: finding for finding in (*warnings, *fit.notes)}
    lines = [*map(findings.limitation, by_topic.values()), findings.adherence_law(fit.law)]
    has_ranges = fit.is_trusted and not contents.plan.keeps_all
    if has_ranges:
        lines.append(
            "All estimates assume that advice did not depend on facts that are not recorded. If it "
            "did, the value that the plan adds to silence in the model lies in the range below."
        )
    yield "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
    if not has_ranges:
        return
    rows = "".join(
        f"<tr><td>{how}</td><td class='number'>{added}</td></tr>"
        for how, added in map(findings.sensitivity_case, contents.sensitivity)
    )
    columns = (
        "difference between advised and other people in what they would have done anyway",
        "the plan adds per episode",
    )
    yield table(table_head(*columns, text=1), rows)


def _method(contents: ReportContents) -> str:
    pooled = "for each step separately" if contents.fit.tally.by_step else "pooled over steps"
    return f"<h2>Method</h2><p>{escape(' '.join(METHOD).format(pooled=pooled))}</p>"


def _chart(chart: Chart) -> str:
    """Return the markup of a chart, with its numbers as a CSV download."""
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
    """Return a value that a spreadsheet does not interpret as a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


def _script(value: object) -> str:
    """Return JSON that cannot close its script element."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
