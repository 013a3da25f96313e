// Figures that few advisers have, loaded with the first adviser that has one: a shared limit, with a column for each stretch of time, and levels of memory.

import { percent, short } from "./common.js";
import { byRow, markOf, times, whisker } from "./dashboard-chart-definitions.js";
import { columns } from "./dashboard-chart-types.js";
import * as sentences from "./dashboard-sentences.js";

const { many } = sentences;

const isShared = (summary) => "shared_limit" in summary;

const sharedUse = {
  after: "budget-use", name: "shared-limit-use", label: "Use of the shared limit",
  note: "Pieces charged to the limit that all episodes share, in the last stretches of time with decisions, each counted by its cost; a count, not an estimate.",
  nothing: "No decisions yet: the use of the shared limit will show here.",
  applies: isShared,
  isEmpty: (summary) => !stretchesOf(summary).length,
  headline: ({ shared_limit: shared }) => useSentence(shared),
  draw: (summary) => (width) => {
    const { pieces } = summary.shared_limit;
    const limit = { value: pieces, name: `limit ${short(pieces)}` };
    return columns({ bins: stretchesOf(summary).map(useBin), format: short, limit }, width);
  },
  table: (summary) => ({
    head: ["from", "to", "limit", "used", "would have been said", "mean price"],
    rows: stretchesOf(summary).map((bin) => [...times(bin), bin.pieces, bin.spent, bin.offered, bin.price]),
  }),
};

const sharedPrice = {
  after: "shared-limit-use", name: "shared-limit-price", label: "Price of the shared limit",
  note: "What a piece had to be worth to be said, per unit of cost: the mean over all that plans would have said in the stretch. The price is learnt from earlier stretches.",
  nothing: "No decisions yet: the price of the shared limit will show here.",
  applies: isShared,
  isEmpty: (summary) => !stretchesOf(summary).some((bin) => bin.price !== null),
  headline: ({ shared_limit: shared }) => priceSentence(shared),
  draw: (summary) => (width) => columns({ bins: stretchesOf(summary).map(priceBin), format: short, least: 0.01 }, width),
  table: (summary) => ({
    head: ["from", "to", "mean price"],
    rows: stretchesOf(summary).map((bin) => [...times(bin), bin.price]),
  }),
};

const stretchesOf = (summary) => summary.shared_limit?.stretches ?? [];

function useBin(bin, i) {
  const body = `${short(bin.spent)} of ${short(bin.pieces)} used; ${short(bin.offered)} would have been said`;
  return { ...markOf(bin, i), value: bin.spent, body };
}

const priceBin = (bin, i) => ({ ...markOf(bin, i), value: bin.price, body: `mean price ${short(bin.price)}` });

/** How much of the shared limit is used in the stretch under way. */
function useSentence({ pieces, spent, left, expected, unit }) {
  const used = unit === "cost" ? `A cost of ${short(spent)} of ${short(pieces)} is used now` : `${short(spent)} of ${many(pieces, "piece")} ${spent === 1 ? "is" : "are"} used now`;
  if (left <= 0) return `${used}: nothing is left`;
  return expected > left ? `${used}; more is expected to be worth saying than is left` : `${used}; what is left is expected to be enough`;
}

/** What a piece of the shared limit must be worth now. */
function priceSentence({ price, left, unit }) {
  const piece = unit === "cost" ? "a unit of cost" : "a piece";
  if (left <= 0) return "Nothing is left of the shared limit now";
  if (price === 0) return "Whatever pays is said: the shared limit has no price now";
  return `Now ${piece} must be worth at least ${short(price)}: fewer are left than would pay`;
}

const byLevel = byRow({
  after: "adherence-by-state", name: "adherence-by-level", label: "Adherence by level of memory",
  note: "Share of the advice seen that was matched, by what the person carries over from earlier advice; whiskers are 95 % intervals. The model says how lift fades from level to level; habits add to the share.",
  nothing: "No advice has been seen yet: adherence by level of memory will show here.",
  applies: (summary) => "by_level" in summary,
  rowsOf: (summary) => summary.by_level ?? [], headline: levelsDiffer,
  mark: (row) => whisker(row.level, "matched", sentences.shareOf(row.matched, row.pieces), row),
  head: ["level", "rested", "pieces", "done", "share", "low", "high"],
  cells: (row) => [row.level, row.rested, row.pieces, row.matched, sentences.shareOf(row.matched, row.pieces), row.low, row.high],
});

/** Whether people match less advice where they are less rested. */
function levelsDiffer(rows) {
  const share = (row) => sentences.shareOf(row.matched, row.pieces);
  const [fresh, tired] = [sentences.top(rows, (row) => row.rested), sentences.top(rows, (row) => -row.rested)];
  const onLevel = (row) => `${percent(share(row))} with ${sentences.quoted(row.level)}${sentences.betweenShares(row.low, row.high)}`;
  if (fresh === tired) return `People match ${onLevel(fresh)}; ${many(fresh.pieces, "piece")}`;
  if (fresh.low > tired.high) return `People match less when tired: ${onLevel(fresh)}, ${onLevel(tired)}`;
  return `No measurable difference between rested and tired: ${onLevel(fresh)}, ${onLevel(tired)}`;
}

/** Each comes after the figure that it names. */
export const OCCASIONAL = [sharedUse, sharedPrice, byLevel];
