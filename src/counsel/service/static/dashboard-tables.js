// The tables as plans: where advice pays, and recent decisions with their reasons.

import { element, short, svg } from "./common.js";
import { moment } from "./dashboard-axes.js";
import { unfold } from "./dashboard-table.js";
import * as words from "./dashboard-words.js";

const FEW = 5;

/** Where advice pays, ranked. */
export const WHERE = {
  name: "where-advice-pays", label: "Where advice pays", first: Infinity,
  note: "Gain: what one piece adds there; the bar is gain times how often the place is met. Criticality: the largest penalty at which advice there still pays. Support: decisions on record in that state.",
  nothing: "So far there is no place known where advice pays.",
  columns: [["Step", "number"], ["State"], ["Advice"], ["Gain", "number"], ["Per episode"], ["Criticality", "number"], ["Support", "number"]],
  items: (summary) => summary.where,
  headline: words.paysMost,
  key: ({ step, state, advice }) => JSON.stringify([step, state, advice]),
  row: (one, { all }) => {
    const most = Math.max(...all.map(perEpisode));
    return [String(one.step), one.state, `▲\u00a0${one.advice}`, short(one.gain), bar(perEpisode(one) / most), short(one.criticality), support(one.support)];
  },
  table: (rows) => ({
    head: ["rank", "step", "state", "advice", "gain", "met per episode", "criticality", "support"],
    rows: rows.map((one, i) => [i + 1, one.step, one.state, one.advice, one.gain, one.met, one.criticality, one.support]),
  }),
};

function perEpisode({ gain, met = 1 }) {
  return gain * met;
}

function bar(share) {
  const long = Math.max(0, Math.min(1, share || 0)) * 100;
  return svg("svg", { viewBox: "0 0 100 10", class: "bar", "aria-hidden": "true" }, [svg("rect", { width: long, height: 10, class: "column" })]);
}

function support(count) {
  return count < FEW ? `${words.whole(count)} (few)` : words.whole(count);
}

/** Recent decisions with their reasons. */
export const RECENT = {
  name: "recent-decisions", label: "Recent decisions", first: 12,
  note: "▲ advice, ● silence, △ advice that was worked out but not shown. Newest first.",
  nothing: "No decisions yet: each will show here with its reason.",
  columns: [["When"], ["State"], ["Adviser"], ["Person did"], ["Reward", "number"], ["Why"]],
  items: (summary) => summary.recent,
  headline: words.lately,
  key: ({ episode, step }) => JSON.stringify([episode, step]),
  row: (one) => [
    stacked(element("time", { datetime: new Date(one.at * 1000).toISOString() }, [moment(one.at)]), `${one.person ?? "–"}, step ${one.step}`),
    one.state, said(one), did(one), one.reward === null ? "–" : short(one.reward), reason(one),
  ],
  table: (rows) => ({
    head: ["at", "person", "episode", "step", "state", "advice", "shown", "must", "held_out", "action", "reward", "why", "considered", "lift", "advantage", "gain",
      "criticality", "price", "spent", "left"],
    rows: rows.map(({ at, person, episode, step, state, advice, shown, must, held_out: heldOut, action, reward, reason: why }) => [
      new Date(at * 1000).toISOString(), person, episode, step, state, advice, shown, must, heldOut, action, reward, why.why, why.considered, why.lift, why.advantage,
      why.gain, why.criticality, why.price, why.spent, why.left]),
  }),
};

function stacked(first, second) {
  return element("div", {}, [first, element("span", { class: "soft below" }, [second])]);
}

function said({ advice, shown, must, held_out: heldOut }) {
  if (advice === null) return element("span", { class: "silent" }, ["● silence"]);
  const spoken = element("span", { class: shown ? "spoken" : "unshown" }, [`${shown ? "▲" : "△"}\u00a0${advice}`]);
  if (!shown) return stacked(spoken, `not shown: ${heldOut ? "episode kept silent" : "shadow"}`);
  return must ? stacked(spoken, "must be said") : spoken;
}

function did({ advice, shown, action }) {
  if (action === null) return element("span", { class: "soft" }, ["not reported"]);
  if (advice === null || !shown) return action;
  return stacked(action, advice === action ? "as advised" : "not as advised");
}

/** Why it was decided so, with a button for the numbers. They print whether open or not. */
function reason({ reason: told }) {
  const numbers = element("dl", { class: "numbers", hidden: "" },
    words.reasonNumbers(told).map(([name, value]) => element("div", {}, [element("dt", {}, [name]), element("dd", {}, [value])])));
  const parts = [element("span", {}, [words.reasonText(told)])];
  if (numbers.children.length) {
    const button = element("button", { type: "button", class: "more", "aria-expanded": "false" }, ["numbers"]);
    button.addEventListener("click", () => unfold(button, numbers.hidden));
    parts.push(" ", button, numbers);
  }
  return element("div", {}, parts);
}
