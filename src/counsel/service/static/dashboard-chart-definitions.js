// The definition of each figure: its numbers, its headline, and its table.

import { percent, short } from "./common.js";
import { columns, frontier, histogram, trend, whiskers } from "./dashboard-chart-types.js";
import { moment } from "./dashboard-times.js";
import * as sentences from "./dashboard-sentences.js";

const { many, whole } = sentences;
const span = (bin) => `${moment(bin.from)} to ${moment(bin.to)}`;
export const times = (bin) => [new Date(bin.from * 1000).toISOString(), new Date(bin.to * 1000).toISOString()];
export const markOf = (bin, i) => ({ key: i, from: bin.from, to: bin.to, head: span(bin) });

const adherence = {
  name: "adherence-over-time", label: "Adherence over time",
  note: "Share of the advice seen that was matched; the band is its 95 % interval.",
  nothing: "No advice has been seen yet: adherence over time will show here.",
  isEmpty: ({ over_time: bins }) => !bins.some((bin) => bin.seen > 0),
  headline: ({ over_time: bins }) => sentences.adherenceChange(bins),
  draw: ({ over_time: bins }) => (width) => trend({ bins: bins.map(adherenceBin), format: percent }, width),
  table: ({ over_time: bins }) => ({
    head: ["from", "to", "seen", "done", "share", "low", "high"],
    rows: bins.map((bin) => [...times(bin), bin.seen, bin.matched, sentences.shareOf(bin.matched, bin.seen), bin.low, bin.high]),
  }),
};

function adherenceBin(bin, i) {
  const share = sentences.shareOf(bin.matched, bin.seen);
  const body = `${percent(share)}${sentences.betweenShares(bin.low, bin.high)}: ${whole(bin.matched)} of ${many(bin.seen, "piece")} matched`;
  return { ...markOf(bin, i), share, low: bin.low, high: bin.high, body };
}

const spoken = {
  name: "advice-rate", label: "Advice rate over time",
  note: "Share of decisions in which advice was shown; a count, not an estimate.",
  nothing: "No decisions yet: the advice rate will show here.",
  isEmpty: (summary) => !sentences.decided(summary),
  headline: (summary) => sentences.adviceRate(summary),
  draw: ({ over_time: bins }) => (width) => columns({ bins: bins.map(rateBin), format: percent, least: 0.04 }, width),
  table: ({ over_time: bins }) => ({
    head: ["from", "to", "decisions", "shown", "share"],
    rows: bins.map((bin) => [...times(bin), bin.decisions, bin.shown, sentences.shareOf(bin.shown, bin.decisions)]),
  }),
};

function rateBin(bin, i) {
  const value = sentences.shareOf(bin.shown, bin.decisions);
  return { ...markOf(bin, i), value, body: `${percent(value)}: ${whole(bin.shown)} of ${many(bin.decisions, "decision")} with advice` };
}

const budget = {
  name: "budget-use", label: "Pieces per episode over time",
  note: "Pieces of advice per episode; a count, not an estimate.",
  nothing: "No episodes yet: pieces per episode will show here against the budget.",
  isEmpty: ({ over_time: bins }) => !bins.some((bin) => bin.episodes > 0),
  headline: ({ spending }) => sentences.budgetUse(spending),
  draw: ({ over_time: bins, spending }) => (width) => {
    const limit = spending.budget === null ? null : { value: spending.budget, name: `budget ${short(spending.budget)}` };
    return columns({ bins: bins.map((bin, i) => budgetBin(bin, i, spending.unit)), format: short, limit, least: 0.1 }, width);
  },
  table: ({ over_time: bins, spending }) => ({
    head: ["from", "to", "episodes", `${spending.unit ?? "pieces"} per episode`, "budget"],
    rows: bins.map((bin) => [...times(bin), bin.episodes, bin.per_episode, spending.budget]),
  }),
};

function budgetBin(bin, i, unit) {
  const value = bin.episodes ? bin.per_episode : null;
  return { ...markOf(bin, i), value, body: `${sentences.perEpisode(value, unit)} in ${many(bin.episodes, "episode")}` };
}

/** A figure with one whisker for each row of the summary that has pieces. */
export function byRow({ rowsOf, headline, mark, cells, head, ...texts }) {
  const known = (summary) => rowsOf(summary).filter((row) => row.pieces > 0);
  return {
    ...texts,
    isEmpty: (summary) => !known(summary).length,
    headline: (summary) => headline(known(summary)),
    draw: (summary) => (width) => whiskers({ rows: known(summary).map(mark), format: percent }, width),
    table: (summary) => ({ head, rows: rowsOf(summary).map(cells) }),
  };
}

const byAdvice = byRow({
  name: "lift-by-advice", label: "Lift by advice",
  note: "Lift: the share of people who act because of the advice; whiskers are 95 % intervals: thick for one planned look, thin for every look.",
  nothing: "No advice has been seen yet: the lift of each advice will show here.",
  rowsOf: (summary) => summary.by_advice, headline: sentences.highestLift,
  mark: (row) => whisker(row.advice, "lift", row.lift, row),
  head: ["advice", "lift", "low", "high", "always low", "always high", "pieces", "done"],
  cells: (row) => [row.advice, row.lift, row.low, row.high, row.always_low, row.always_high, row.pieces, row.matched],
});

const byState = byRow({
  name: "adherence-by-state", label: "Adherence by state",
  note: "Share of the advice seen that was matched; whiskers are 95 % intervals.",
  nothing: "No advice has been seen yet: adherence by state will show here.",
  rowsOf: (summary) => summary.by_state, headline: sentences.statesDiffer,
  mark: (row) => whisker(row.state, "matched", sentences.shareOf(row.matched, row.pieces), row),
  head: ["state", "pieces", "done", "share", "low", "high"],
  cells: (row) => [row.state, row.pieces, row.matched, sentences.shareOf(row.matched, row.pieces), row.low, row.high],
});

export function whisker(name, what, value, row) {
  const { low, high, pieces, matched } = row;
  const body = `${what} ${percent(value)}${sentences.betweenBoth(row, sentences.hundredths)}; ${whole(matched)} of ${many(pieces, "piece")} matched`;
  return { ...sentences.alwaysOf(row), key: name, name, value, low, high, label: `${percent(value)} · ${many(pieces, "piece")}`, head: name, body };
}

const byPerson = {
  name: "adherence-by-person", label: "Adherence by person",
  note: "How many people match which share of the advice they see; people with 5 pieces or more.",
  nothing: "Nobody has seen 5 pieces of advice yet: how people differ will show here.",
  isEmpty: ({ by_person: people }) => !people.count.some((count) => count > 0),
  headline: ({ by_person: people }) => sentences.peopleDiffer(people),
  draw: ({ by_person: people }) => (width) => histogram({ bins: peopleBins(people), format: percent }, width),
  table: ({ by_person: people }) => ({
    head: ["from", "to", "people"],
    rows: peopleBins(people).map(({ from, to, count }) => [from, to, count]),
  }),
};

function peopleBins({ edges, count }) {
  return count.map((people, i) => ({
    key: i, from: edges[i], to: edges[i + 1], count: people,
    head: `${percent(edges[i])} to ${percent(edges[i + 1])} matched`, body: many(people, "person", "people"),
  }));
}

/** The frontier, beside the table of where advice pays. */
export const FRONTIER = {
  name: "frontier", label: "Frontier: reward against pieces of advice",
  note: "The best expected reward per episode for each number of pieces, as the plan expects it, without an interval.",
  nothing: "There is no frontier yet.",
  isEmpty: ({ frontier: data }) => !data?.marks.length,
  headline: ({ frontier: data }) => sentences.limitBrings(data),
  draw: ({ frontier: data }) => (width) => frontier({ ...frontierPoints(data), format: short }, width),
  table: ({ frontier: { pieces, value, marks, unit } }) => ({
    head: ["name", `${unit ?? "pieces"} per episode`, "reward per episode"],
    rows: [...pieces.map((count, i) => ["frontier", count, value[i]]), ...marks.map((mark) => [mark.name, mark.pieces, mark.value])],
  }),
};

function frontierPoints({ pieces, value, marks, unit }) {
  const body = (count, worth) => `${sentences.perEpisode(count, unit)}, reward ${short(worth)}`;
  return {
    axis: `${unit === "cost" ? "cost" : "pieces"} of advice per episode`,
    points: pieces.map((count, i) => ({ key: i, pieces: count, value: value[i], head: "frontier", body: body(count, value[i]) })),
    marks: marks.map((mark) => ({ ...mark, key: mark.name, head: mark.name, body: body(mark.pieces, mark.value) })),
  };
}

/** The small figures, in the order of the page. */
export const SMALL = [adherence, spoken, budget, byAdvice, byState, byPerson];
