// The sentences of the dashboard: pure functions of the summary.

import { percent, short, signed } from "./common.js";

const Z = 1.96;

/** Format a count with all its digits, alone or with its noun. */
export const whole = (count) => count.toLocaleString("en");
export const many = (count, singular, plural = `${singular}s`) => `${whole(count)} ${count === 1 ? singular : plural}`;

export const quoted = (label) => `“${label}”`;

/** Return the share of pieces that were matched; null without pieces. */
export const shareOf = (matched, pieces) => (pieces ? matched / pieces : null);

/** Format an interval in brackets, of shares in per cent; the text is empty if it is not known. */
export const between = (low, high, text = short) => (isKnown(low) && isKnown(high) ? ` [${text(low)}, ${text(high)}]` : "");
export const betweenShares = (low, high) => between(low, high, hundredths);
export const hundredths = (share) => String(Math.round(100 * share));

/** Format both intervals: for one planned look, and the one that holds at every look. */
export function betweenBoth({ low, high, always_low: least, always_high: most }, text) {
  const always = isKnown(least) ? between(least, most, text) : isKnown(most) ? ` at most ${text(most)}` : "";
  return `${between(low, high, text)}${always && `, at every look${always}`}`;
}

/** The interval that a claim rests on: people look often, so the one that holds at every look if there is one. */
const firm = ({ low, high, always_low: least = low, always_high: most = high }) => [least ?? -Infinity, most ?? Infinity];

/** What the two ranges mean; empty without numbers that have both. */
export function twoRanges({ listening, worth }) {
  const has = [listening, worth].some((number) => isKnown(number?.always_low));
  return has ? "Looked at every day, the wider, thin range holds; the narrow, thick one holds for one look planned beforehand." : "";
}

const isKnown = (number) => number !== null && number !== undefined;

/** Count the decisions of the last episodes. */
export const decided = ({ over_time: bins }) => bins.reduce((sum, bin) => sum + bin.decisions, 0);

/** The page in one sentence. */
export function finding(summary) {
  const { share, low, high, pieces } = summary.listening;
  if (!decided(summary)) return "Nothing has happened yet";
  if (!pieces) return "Nobody has seen advice yet";
  return `People match ${percent(share)} of the advice they see${betweenShares(low, high)}; ${many(pieces, "piece")}`;
}

/** The sentences after the finding: what advice is worth, and the data behind it. */
export function basis(summary) {
  const { worth, episodes, people, considered = episodes, advice_rate: rate } = summary;
  if (!decided(summary)) return "This adviser is ready: start an episode, ask for advice at each step, and report the outcomes.";
  const who = `${many(episodes, "episode")} with ${many(people, "person", "people")}`;
  const last = considered < episodes ? `; changes over time are of the last ${whole(considered)}` : "";
  return `${worthText(worth)}From ${who}, with advice in ${percent(rate)} of ${many(decided(summary), "decision")}${last}.`;
}

function worthText(worth) {
  if (!isKnown(worth?.estimate)) return "";
  const { estimate, low, high, how } = worth;
  const [least, most] = firm(worth);
  if (how !== "measured") return `The plan expects ${signed(estimate)} reward per episode from advice; that is not measured. `;
  const range = between(low, high, signed);
  if (least > 0) return `Advice adds ${short(estimate)} reward per episode${range}. `;
  if (most < 0) return `Advice costs ${short(-estimate)} reward per episode${range}. `;
  if (low > 0 || high < 0) return `Advice seems to ${low > 0 ? "add" : "cost"} ${short(Math.abs(estimate))} reward per episode${range}, which is not certain yet for people who look every day. `;
  return `It is not clear yet whether advice pays: ${signed(estimate)} reward per episode${range}. `;
}

/** The settings of an adviser in one line. */
export function about({ name, settings }) {
  const { source, penalty, budget, hard, always, mode, holdout, explore, memory_across: across } = settings;
  const parts = [name, source];
  if (isKnown(budget)) parts.push(`budget ${short(budget)} per episode${hard ? ", hard" : " on average"}`);
  else if (isKnown(penalty)) parts.push(`penalty ${short(penalty)} per piece`);
  else if (always) parts.push("always advises");
  if (settings.shared_limit) parts.push(`${perStretch(settings.shared_limit)} for all episodes together`);
  parts.push({ live: "live", shadow: "in shadow: nothing is shown", off: "off" }[mode] ?? mode);
  if (holdout) parts.push(`${percent(holdout)} of episodes kept silent`);
  if (across === "person") parts.push("people remember advice over their episodes");
  if (explore) parts.push(`${percent(explore)} of decisions left to a trial's schedule`);
  return parts.join(" · ");
}

/** The three numbers: each with a figure, what it is, and what it is based on. */
export const three = (summary) => [listens(summary), pays(summary), spends(summary)];

function listens({ listening }) {
  const { share, low, high, pieces } = listening;
  const what = "of the advice seen is matched";
  if (!pieces) return { figure: "–", what, behind: "no advice has been seen yet" };
  return {
    figure: percent(share), what, behind: `${betweenBoth(listening, hundredths).trim()}; ${many(pieces, "piece")} seen`.replace(/^; /, ""),
    strip: { ...alwaysOf(listening), low, high, value: share, domain: [0, 1], ends: ["0 %", "100 %"] },
  };
}

function pays({ worth }) {
  const what = "reward per episode that advice adds";
  if (!isKnown(worth?.estimate)) return { figure: "–", what, behind: "not known yet" };
  const { estimate, low, high, advised, held_out: silent, how } = worth;
  if (how !== "measured") return { figure: signed(estimate), what, behind: "what the plan expects; not measured, so no interval" };
  const [always, ever] = firm(worth);
  const doubt = low <= 0 && high >= 0 ? " It may be nothing: the interval includes zero."
    : always <= 0 && ever >= 0 ? " It may be nothing: the wider range includes zero or is not known yet." : "";
  const counts = `${many(advised, "episode")} with advice, ${whole(silent)} kept silent at random.${doubt}`;
  if (!isKnown(low) || !isKnown(high)) return { figure: signed(estimate), what, behind: counts };
  const [least, most] = [Math.min(0, low, worth.always_low ?? 0), Math.max(0, high, worth.always_high ?? 0)];
  return {
    figure: signed(estimate), what, behind: `${betweenBoth(worth, signed).trim()}; ${counts}`,
    strip: { ...alwaysOf(worth), low, high, value: estimate, domain: [least, most], ends: [signed(least), signed(most)], rule: 0 },
  };
}

/** The interval that holds at every look, for charts. */
export const alwaysOf = ({ always_low: least = null, always_high: most = null }) => ({ least, most });

/** "2 pieces per episode", or "a cost of 2 per episode" where some advice costs more or less than 1. */
export function perEpisode(amount, unit) {
  const shown = short(amount);
  if (unit === "cost") return `a cost of ${shown} per episode`;
  return `${shown} ${shown === "1" ? "piece" : "pieces"} per episode`;
}

function spends({ spending: { per_episode: rate, low, high, budget, must_say: must, episodes: behind, unit }, episodes }) {
  const limited = isKnown(budget);
  const sent = unit === "cost" ? "cost of the advice sent per episode" : "pieces sent per episode";
  const what = limited ? `${sent}, of ${short(budget)} in the budget` : `${sent}; there is no budget`;
  if (!episodes || !isKnown(rate)) return { figure: "–", what, behind: "no episode yet" };
  const apart = must ? `; apart from ${short(must)} that must be said` : "";
  const most = Math.max(high ?? rate, budget ?? 0) || 1;
  return {
    figure: limited ? `${short(rate)} of ${short(budget)}` : short(rate), what,
    behind: `${between(low, high).trim()}; ${many(behind, "episode")}${apart}`.replace(/^; /, ""),
    strip: { low, high, value: rate, domain: [0, most], ends: ["0", limited && budget === most ? `budget ${short(most)}` : short(most)], rule: budget },
  };
}

/** Whether adherence changes: the older half of the log against the newer. */
export function adherenceChange(bins) {
  const seen = bins.filter((bin) => bin.seen > 0);
  const cut = Math.floor(seen.length / 2);
  if (cut === 0) return "It is too early to say whether adherence changes";
  const [old, late] = [total(seen.slice(0, cut)), total(seen.slice(cut))];
  const [was, is] = [old.matched / old.seen, late.matched / late.seen];
  const shares = `${percent(was)} in the older half, ${percent(is)} in the newer`;
  const [low, high] = difference(old, late);
  if (low > 0) return `Adherence rises: ${shares}`;
  if (high < 0) return `Adherence falls: ${shares}`;
  return `No measurable change in adherence: ${shares}`;
}

function total(bins) {
  return bins.reduce((sum, bin) => ({ seen: sum.seen + bin.seen, matched: sum.matched + bin.matched }), { seen: 0, matched: 0 });
}

/** Newcombe's interval for the difference of two shares, from Wilson's for each. */
function difference(old, late) {
  const [was, is] = [wilson(old), wilson(late)];
  const mean = is.share - was.share;
  return [
    mean - Math.hypot(is.share - is.low, was.high - was.share),
    mean + Math.hypot(is.high - is.share, was.share - was.low),
  ];
}

function wilson({ matched, seen }) {
  const share = matched / seen;
  const middle = (share + Z ** 2 / (2 * seen)) / (1 + Z ** 2 / seen);
  const half = (Z * Math.sqrt((share * (1 - share)) / seen + Z ** 2 / (4 * seen ** 2))) / (1 + Z ** 2 / seen);
  return { share, low: middle - half, high: middle + half };
}

export function adviceRate(summary) {
  const [share, decisions] = [summary.advice_rate, decided(summary)];
  if (!share) return `No advice was shown so far in ${many(decisions, "decision")}`;
  return `The adviser speaks in ${percent(share)} of ${many(decisions, "decision")} and is silent in the rest`;
}

/** The pieces sent against the budget. */
export function budgetUse({ per_episode: sent, low, high, budget, unit }) {
  const amount = `${perEpisode(sent, unit)}${between(low, high)}`;
  const pieces = `${amount[0].toUpperCase()}${amount.slice(1)}`;
  if (!isKnown(budget)) return `${pieces}; there is no budget`;
  if (sent <= budget) return `${pieces}: within the budget of ${short(budget)}`;
  if (low <= budget) return `${pieces}: about the budget of ${short(budget)}`;
  return `${pieces}: more than the budget of ${short(budget)}`;
}

/** "10 pieces per day", or "a cost of 10 per 90 s" where some advice costs more or less than 1. */
export function perStretch({ pieces, per, unit }) {
  const amount = unit === "cost" ? `a cost of ${short(pieces)}` : `${short(pieces)} ${pieces === 1 ? "piece" : "pieces"}`;
  return `${amount} per ${typeof per === "number" ? `${whole(per)} s` : per}`;
}

/** The highest lift, if it is higher than any other; otherwise the lift that is known best. */
export function highestLift(rows) {
  const lift = (row) => `The lift of ${quoted(row.advice)} is ${percent(row.lift)}${betweenShares(row.low, row.high)}; ${many(row.pieces, "piece")}`;
  const best = top(rows, (row) => row.lift);
  const isHighest = rows.length > 1 && rows.every((row) => row === best || firm(row)[1] < firm(best)[0]);
  return isHighest ? `${lift(best)}; higher than any other` : lift(top(rows, (row) => row.pieces));
}

/** In which state people match most advice, and in which least. */
export function statesDiffer(rows) {
  const share = (row) => shareOf(row.matched, row.pieces);
  const [most, least] = [top(rows, share), top(rows, (row) => -share(row))];
  const inState = (row) => `${percent(share(row))} in ${quoted(row.state)}${betweenShares(row.low, row.high)}`;
  if (rows.length === 1) return `People match ${inState(most)}; ${many(most.pieces, "piece")}`;
  const finding = most.low > least.high ? "Adherence depends on the state" : "No measurable difference between states";
  return `${finding}: ${inState(most)}, ${inState(least)}`;
}

export const top = (rows, value) => rows.reduce((best, row) => (value(row) > value(best) ? row : best));

/** How much people differ: the range of the middle eight in ten, or of all where they are few. */
export function peopleDiffer({ edges, count }) {
  const people = count.reduce((sum, number) => sum + number, 0);
  const aside = people < 10 ? 0 : 0.1;
  const low = edges[reached(count, aside * people)];
  const high = edges[count.length - reached([...count].reverse(), aside * people)];
  const who = aside ? `Eight in ten of ${whole(people)} people match` : many(people, "person matches", "people match");
  return `${who} ${percent(low)} to ${percent(high)} of the advice they see`;
}

/** Return the first bin by whose end more than `enough` people are counted. */
function reached(count, enough) {
  let sum = 0;
  return count.findIndex((number) => (sum += number) > enough);
}

export function highestGain([first]) {
  return `Advice pays most in ${quoted(first.state)} at step ${first.step}: ${quoted(first.advice)} gains ${short(first.gain)}`;
}

/** How much of what advice can add the chosen limit brings. */
export function limitBrings({ value, marks, unit }) {
  const find = (name) => marks.find((mark) => mark.name === name);
  const never = find("never")?.value ?? value[0];
  const planned = marks.filter((mark) => mark.name !== "now");
  const all = Math.max(...value, ...planned.map((mark) => mark.value)) - never;
  if (!(all > 0)) return "Advice cannot add anything here";
  const portion = (mark) => percent((mark.value - never) / all);
  const [chosen, now] = [find("chosen"), find("now")];
  if (!chosen) return `Advice can add up to ${short(all)} per episode`;
  const given = now && `${unit === "cost" ? "a cost of " : ""}${short(now.pieces)}`;
  const today = now ? `; now ${given} ${unit === "cost" || given === "1" ? "brings" : "bring"} a reward of ${short(now.value)}` : "";
  const amount = perEpisode(chosen.pieces, unit);
  return `${amount[0].toUpperCase()}${amount.slice(1)} can bring ${portion(chosen)} of what advice adds${today}`;
}

export function recentAdvice(recent) {
  const advised = recent.filter(({ advice }) => advice !== null);
  const shown = advised.filter((decision) => decision.shown);
  const hidden = advised.length - shown.length;
  const aside = hidden ? `, ${whole(hidden)} not shown` : "";
  return `Of the last ${many(recent.length, "decision")}, ${whole(shown.length)} came with advice${aside}`;
}

export const reasonText = ({ why }) => (why ? `${why[0].toUpperCase()}${why.slice(1)}.` : "No reason is on record.");

/** The numbers behind a reason, as names and values. */
export function reasonNumbers(reason) {
  const rows = [
    ["considered", reason.considered ?? null], ["lift", share(reason.lift)], ["advantage", number(reason.advantage)],
    ["gain", number(reason.gain)], ["criticality", number(reason.criticality)], ["cost", number(reason.cost)],
    ["price of a piece", number(reason.price)],
    ["burden: what it costs later", number(reason.burden)], ["level", reason.level ?? null], ["rested", share(reason.rested)],
    ["spent before", number(reason.spent)], ["left", number(reason.left)],
    ["price of the shared limit", number(reason.shared_price)], ["left of the shared limit", number(reason.shared_left)],
  ];
  return rows.filter(([, text]) => text !== null);
}

const number = (value) => (isKnown(value) ? short(value) : null);
const share = (value) => (isKnown(value) ? percent(value) : null);

/** How many things the data does not show. */
export function notKnown(summary) {
  const { unknown: sentences } = summary;
  if (!decided(summary) && !sentences.length) return "Without decisions the data does not show anything yet";
  if (!sentences.length) return "As far as the service knows, nothing is missing from the data";
  return sentences.length === 1 ? "One thing the data does not show" : `${whole(sentences.length)} things the data does not show`;
}
