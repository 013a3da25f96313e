"""The charts of a log's report in Plotly's format, each with its numbers as a table."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counsel._arrays import Floats
from counsel.drawing.palette import (
    ADVICE,
    DARK,
    GOLD,
    HARM,
    INK,
    LINES,
    SILENCE_TEXT,
    STONES,
    WHITE,
)
from counsel.estimate.intervals import Z
from counsel.logs.adherence_breakdown import AdherenceBreakdown
from counsel.logs.fading import FadingEstimate
from counsel.logs.listening import Trend
from counsel.logs.report_contents import ReportContents

BAND = "rgba(11,122,117,.15)"
NIGHTS = {
    ADVICE: DARK["advice"],
    SILENCE_TEXT: DARK["silence"],
    HARM: DARK["harm"],
    GOLD: DARK["star"],
    INK: DARK["ink"],
    LINES: DARK["line"],
    STONES: DARK["soft"],
    WHITE: DARK["card"],
    BAND: "rgba(79,195,187,.2)",
}
"""The colours of charts, and the same colours in the dark theme."""

Numbers = float | Floats

MOST_ROWS = 25
"""The most states of the heat map, and rows of any other chart."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its name, its traces and layout for Plotly, and its numbers as a table."""

    name: str
    traces: Sequence[dict[str, Any]]
    layout: dict[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def criticality_chart(contents: ReportContents) -> Chart | None:
    """Return criticality by step and state."""
    tally, critical = contents.fit.tally, contents.plan.criticality.lower
    if critical.ndim > 2:  # of somebody at the start of the memory
        critical = critical[contents.fit.problem.level_of(None)]
    taken = contents.fit.estimates.taken.sum(axis=(0, 2))
    known = np.flatnonzero(taken > 0)
    order = known[np.argsort(-critical[:, known].max(axis=0), kind="stable")][:MOST_ROWS]
    if critical[:, order].max() <= 0.0:
        return None
    table = np.where(np.isfinite(critical[:, order]), critical[:, order], np.nan).T
    names = [_plain(tally.states[s]) for s in order]
    trace = {
        "type": "heatmap",
        "z": _list(table[::-1]),
        "x": list(range(table.shape[1])),
        "y": names[::-1],
        "colorscale": [[0, WHITE], [1, ADVICE]],
        "colorbar": {"title": {"text": "criticality"}, "thickness": 12},
        "hovertemplate": "step %{x}, %{y}<br>criticality %{z:.3g}<extra></extra>",
    }
    layout = _layout("step", "", height=120 + 26 * len(names))
    layout["xaxis"]["dtick"] = max(1, table.shape[1] // 12)
    rows = [
        (h, tally.states[s], float(critical[h, s])) for s in order for h in range(critical.shape[0])
    ]
    return Chart("criticality", [trace], layout, ("step", "state", "criticality"), rows)


def frontier_chart(contents: ReportContents) -> Chart:
    """Return the frontier with its band, beside silence, the log, the plan and the best action."""
    quiet, chosen = ("never", "as little as known"), contents.worth.value.model
    first = float(contents.budgets[0])
    points = [
        (quiet[first > 0.0], first, contents.alone, SILENCE_TEXT, "circle"),
        ("as logged", contents.fit.logged_cost, contents.today, HARM, "diamond"),
        ("always the best action", contents.always_cost, contents.always, GOLD, "square"),
    ]
    if chosen is not None:
        spent = contents.plan.plan.advice_cost
        points.insert(2, ("the plan, cross-fitted", spent, chosen, ADVICE, "triangle-up"))
    unit, axis = "pieces", "pieces of advice per episode"
    if contents.plan.has_costs:
        unit, axis = "cost", "cost of advice per episode"
    x = contents.budgets.tolist()
    traces: list[dict[str, Any]] = [
        {
            "x": x + x[::-1],
            "y": _list(contents.high) + _list(contents.low[::-1]),
            "fill": "toself",
            "fillcolor": BAND,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
            "mode": "lines",
        },
        {
            "x": x,
            "y": _list(contents.value),
            "mode": "lines",
            "line": {"color": ADVICE, "width": 2.5},
            "name": "the frontier",
            "hovertemplate": f"%{{x:.3g}} {unit}: %{{y:.5g}}<extra></extra>",
        },
    ]
    for name, amount, estimate, colour, symbol in points:
        traces.append(
            {
                "x": [amount],
                "y": [estimate.value],
                "error_y": _whiskers(estimate.value, estimate.low, estimate.high, SILENCE_TEXT),
                "mode": "markers+text",
                "text": [f"  {name}  "],
                "textposition": "middle left" if amount > 0.8 * x[-1] else "middle right",
                "cliponaxis": False,
                "marker": {"color": colour, "size": 12, "symbol": symbol},
                "name": name,
                "hovertemplate": f"{name}: %{{x:.3g}} {unit}, %{{y:.5g}}<extra></extra>",
            }
        )
    layout = _layout(axis, "reward per episode", height=420)
    curve = (contents.budgets, contents.value, contents.low, contents.high)
    rows = [
        *(("frontier", *point) for point in zip(*curve, strict=True)),
        *((name, amount, e.value, e.low, e.high) for name, amount, e, _, _ in points),
    ]
    return Chart("frontier", traces, layout, ("what", unit, "value", "low", "high"), rows)


def breakdown_chart(name: str, by: AdherenceBreakdown) -> Chart:
    """Return match rates with whiskers, beside the share that would have matched anyway."""
    order = by.most_given[:MOST_ROWS][::-1]
    share, low, high = by.match_rate
    names = [_plain(by.keys[i]) for i in order]
    counts = [f"{by.given[i]:,.0f} pieces" for i in order]
    matched = {
        "x": _list(share[order]),
        "y": names,
        "error_x": _whiskers(share[order], low[order], high[order], ADVICE),
        "mode": "markers",
        "marker": {"color": ADVICE, "size": 11, "symbol": "triangle-up"},
        "name": "matched",
        "customdata": counts,
        "hovertemplate": "%{y}: matched %{x:.1%} of %{customdata}<extra></extra>",
    }
    known = order[by.has_lift[order]]
    habit = {
        "x": _list(np.where(by.is_partial, np.nan, by.anyway_share)[known]),
        "y": [_plain(by.keys[i]) for i in known],
        "mode": "markers",
        "marker": {"color": SILENCE_TEXT, "size": 10, "symbol": "circle"},
        "name": "anyway",
        "hovertemplate": "%{y}: anyway %{x:.1%}<extra></extra>",
    }
    layout = _layout("share of the advice that people see", "", height=130 + 30 * len(order))
    layout["xaxis"] |= {"tickformat": ".0%", "range": [-0.02, 1.02]}
    layout["showlegend"] = True
    rows = [(by.keys[i], int(by.given[i]), int(by.matched[i]), *_lift(by, i)) for i in order[::-1]]
    numbers = ("seen", "matched", "anyway", "lift", "lift_low", "lift_high")
    columns = (name.removeprefix("by-"), *numbers)
    return Chart(name, [matched, habit], layout, columns, rows)


def _lift(by: AdherenceBreakdown, i: int) -> tuple[object, object, object, object]:
    """Return the share that would match anyway and the lift with its ends; empty if unknown."""
    if not by.has_lift[i]:
        return "", "", "", ""
    return float(by.anyway_share[i]), float(by.lift[i]), float(by.low[i]), float(by.high[i])


def trend_chart(name: str, trend: Trend, title: str) -> Chart:
    """Return the lift along the scale of a trend."""
    by = trend.by
    at: list[object] = trend.at.tolist()
    trace = {
        "x": at,
        "y": _list(by.lift),
        "error_y": {"type": "data", "array": _list(Z * by.error), "color": ADVICE},
        "mode": "markers+lines",
        "line": {"color": ADVICE, "width": 1},
        "marker": {"color": ADVICE, "size": 9, "symbol": "triangle-up"},
        "customdata": [f"{n:,.0f} pieces" for n in by.given],
        "hovertemplate": "lift %{y:.2f} from %{customdata}<extra></extra>",
    }
    layout = _layout(title, "lift", height=320)
    layout["yaxis"]["rangemode"] = "tozero"
    rows = list(zip(at, by.given.tolist(), by.matched.tolist(), by.lift.tolist(), strict=True))
    return Chart(name, [trace], layout, ("at", "seen", "matched", "lift"), rows)


def fading_chart(fading: FadingEstimate) -> Chart:
    """Return what is left of the lift at each level of a memory, with 95 % intervals."""
    known = np.isfinite(fading.high)
    names = [_plain(label) for label in fading.kind.labels]
    share, low, high = (
        100.0 * np.where(known, end, fading.factor)
        for end in (fading.factor, fading.low, fading.high)
    )
    trace = {
        "x": names,
        "y": _list(share),
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": _list(high - share),
            "arrayminus": _list(share - low),
            "color": ADVICE,
        },
        "mode": "markers+lines",
        "line": {"color": ADVICE, "width": 1},
        "marker": {
            "color": [ADVICE if is_known else WHITE for is_known in known],
            "line": {"color": ADVICE, "width": 2},
            "size": 9,
        },
        "customdata": [f"{n:,.0f} pieces" for n in fading.pieces],
        "hovertemplate": "%{x}: %{y:.0f} % of the lift, from %{customdata}<extra></extra>",
    }
    layout = _layout("", "lift left (%)", height=320)
    layout["yaxis"]["rangemode"] = "tozero"
    numbers = (fading.pieces, fading.factor, fading.low, np.where(known, fading.high, np.nan))
    rows = [
        (label, *("" if math.isnan(x) else x for x in each))
        for label, *each in zip(fading.kind.labels, *(n.tolist() for n in numbers), strict=True)
    ]
    return Chart("fading", [trace], layout, ("level", "pieces", "fading", "low", "high"), rows)


def people_chart(lift: Floats) -> Chart:
    """Return the distribution of lifts over people."""
    counts, edges = np.histogram(lift, bins=20)
    trace = {
        "type": "bar",
        "x": _list((edges[1:] + edges[:-1]) / 2.0),
        "y": counts.tolist(),
        "width": _list(np.diff(edges) * 0.94),
        "marker": {"color": ADVICE},
        "hovertemplate": "lift near %{x:.2f}: %{y} people<extra></extra>",
    }
    rows = [(float(a), float(b), int(n)) for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    layout = _layout("lift", "people", height=300)
    return Chart("people", [trace], layout, ("lift_from", "lift_to", "people"), rows)


def _layout(x: str, y: str, *, height: int) -> dict[str, Any]:
    axis = {"gridcolor": LINES, "zeroline": False, "automargin": True}
    return {
        "height": height,
        "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "color": INK, "size": 13},
        "showlegend": False,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": STONES, "activecolor": ADVICE},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "xaxis": axis | {"title": {"text": x}},
        "yaxis": axis | {"title": {"text": y}},
    }


def _whiskers(value: Numbers, low: Numbers, high: Numbers, colour: str) -> dict[str, Any]:
    above, below = np.atleast_1d(high - value), np.atleast_1d(value - low)
    ends = {"array": _list(above), "arrayminus": _list(below)}
    return {"type": "data", "symmetric": False, **ends, "color": colour}


def _list(numbers: Floats) -> list[Any]:
    """Return numbers as lists for JSON, None for NaN and infinity."""
    if numbers.ndim > 1:
        return [_list(row) for row in numbers]
    return [float(x) if math.isfinite(x) else None for x in numbers]


def _plain(label: str) -> str:
    """Return a label that Plotly shows as plain text."""
    text = label if len(label) <= 40 else label[:37] + "…"
    return html.escape(text, quote=False)
