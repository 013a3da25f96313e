// The definition of each table: where advice pays, and recent decisions with their reasons.

import { element, short, svg } from "./common.js";
import { moment } from "./dashboard-times.js";
import { unfold } from "./dashboard-table.js";
import * as sentences from "./dashboard-sentences.js";

const FEW = 5;

export const WHERE = {
  name: "where-advice-pays", label: "Where advice pays", first: Infinity,
  note: "Gain: what one piece adds there; the bar is the gain times how often an episode gets there. Criticality: the largest penalty at which advice there still pays. Support: decisions on record in that state.",
  nothing: "No state is known yet in which advice pays.",
  columns: [["Step", "number"], ["State"], ["Advice"], ["Gain", "number"], ["Per episode"], ["Criticality", "number"], ["Support", "number"]],
  items: (summary) => summary.where,
  headline: sentences.highestGain,
  key: ({ step, state, advice }) => JSON.stringify([step, state, advice]),
  row: (cell, { all }) => {
    const most = Math.max(...all.map(perEpisode));
    return [String(cell.step), cell.state, `▲\u00a0${cell.advice}`, short(cell.gain), bar(perEpisode(cell) / most), short(cell.criticality), support(cell.support)];
  },
  table: (rows) => ({
    head: ["rank", "step", "state", "advice", "gain", "met per episode", "criticality", "support"],
    rows: rows.map((cell, i) => [i + 1, cell.step, cell.state, cell.advice, cell.gain, cell.met, cell.criticality, cell.support]),
  }),
};

const perEpisode = ({ gain, met = 1 }) => gain * met;

function bar(share) {
  const long = Math.max(0, Math.min(1, share || 0)) * 100;
  return svg("svg", { viewBox: "0 0 100 10", class: "bar", "aria-hidden": "true" }, [svg("rect", { width: long, height: 10, class: "column" })]);
}

const support = (count) => (count < FEW ? `${sentences.whole(count)} (few)` : sentences.whole(count));

export const RECENT = {
  name: "recent-decisions", label: "Recent decisions", first: 12,
  note: "▲ advice, ● silence, △ advice that was not shown. Newest first.",
  nothing: "No decisions yet: each will show here with its reason.",
  columns: [["When"], ["State"], ["Adviser"], ["Person did"], ["Reward", "number"], ["Why"]],
  items: (summary) => summary.recent,
  headline: sentences.recentAdvice,
  key: ({ episode, step }) => JSON.stringify([episode, step]),
  row: (decision) => {
    const { at, person, step, reward } = decision;
    return [
      stacked(element("time", { datetime: new Date(at * 1000).toISOString() }, [moment(at)]), `${person ?? "–"}, step ${step}`),
      stateCell(decision), adviceCell(decision), actionCell(decision), reward === null ? "–" : short(reward), reasonCell(decision),
    ];
  },
  table: (rows) => ({
    head: ["at", "person", "episode", "step", "state", "advice", "shown", "must", "held_out", "action", "reward", "why", "considered", "lift", "advantage", "gain",
      "criticality", "price", "spent", "left", ...costColumn(rows), ...levelColumns(rows), ...sharedColumns(rows)],
    rows: rows.map(({ at, person, episode, step, state, advice, shown, must, held_out: heldOut, action, reward, reason: why }) => [
      new Date(at * 1000).toISOString(), person, episode, step, state, advice, shown, must, heldOut, action, reward, why.why, why.considered, why.lift, why.advantage,
      why.gain, why.criticality, why.price, why.spent, why.left, ...costColumn(rows).map(() => why.cost ?? 1), ...levelColumns(rows).map((name) => why[name] ?? null),
      ...sharedColumns(rows).map((name) => why[name] ?? null)]),
  }),
};

/** The column of costs, where some advice costs more or less than 1. */
const costColumn = (rows) => (rows.some(({ reason }) => "cost" in reason) ? ["cost"] : []);

/** The columns of people with a memory. */
const levelColumns = (rows) => (rows.some(({ reason }) => "level" in reason) ? ["level", "rested", "burden"] : []);

/** The columns of a limit that all episodes share. */
const sharedColumns = (rows) => (rows.some(({ reason }) => "shared_price" in reason) ? ["shared_price", "shared_left"] : []);

const stateCell = ({ state, reason: { level } }) => (level ? stacked(state, level) : state);

const stacked = (first, second) => element("div", {}, [first, element("span", { class: "soft below" }, [second])]);

function adviceCell({ advice, shown, must, held_out: heldOut }) {
  if (advice === null) return element("span", { class: "silent" }, ["● silence"]);
  const spoken = element("span", { class: shown ? "spoken" : "unshown" }, [`${shown ? "▲" : "△"}\u00a0${advice}`]);
  if (!shown) return stacked(spoken, `not shown: ${heldOut ? "episode kept silent" : "shadow"}`);
  return must ? stacked(spoken, "must be said") : spoken;
}

function actionCell({ advice, shown, action }) {
  if (action === null) return element("span", { class: "soft" }, ["not reported"]);
  if (advice === null || !shown) return action;
  return stacked(action, advice === action ? "as advised" : "not as advised");
}

/** The reason, with a button for the numbers. They print whether open or not. */
function reasonCell({ reason }) {
  const numbers = element("dl", { class: "numbers", hidden: "" },
    sentences.reasonNumbers(reason).map(([name, value]) => element("div", {}, [element("dt", {}, [name]), element("dd", {}, [value])])));
  const parts = [element("span", {}, [sentences.reasonText(reason)])];
  if (numbers.children.length) {
    const button = element("button", { type: "button", class: "more", "aria-expanded": "false" }, ["numbers"]);
    button.addEventListener("click", () => unfold(button, numbers.hidden));
    parts.push(" ", button, numbers);
  }
  return element("div", {}, parts);
}
