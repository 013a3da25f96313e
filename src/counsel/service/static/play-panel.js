// The side panel: how much the player listens, advice spent, the frontier.

import { element, percent, short } from "./common.js";
import { Frontier, History } from "./play-charts.js";
import { count } from "./play-sentences.js";

const MANY = 12; // Pieces drawn one by one; more are only counted.

export class Panel {
  constructor(find, people) {
    Object.assign(this, { find, people, rows: new Map() });
    this.frontier = new Frontier(find("frontier"), find("frontier-about"));
    this.history = new History(find("history"));
  }

  show(game) {
    showRest(this.find("rest"), game.rest);
    const person = this.people.find(({ name }) => name === game.person);
    this.find("listening-title").textContent = person ? `How much ${person.title} listens` : "How much you listen";
    this.find("listening-about").textContent = this.about(game, person);
    for (const lift of game.listening) this.row(lift.advice).show(lift);
    this.history.show(game);
    this.showSpent(game);
    this.frontier.show(game, person ? person.title : "You");
  }

  about(game, person) {
    const heard = game.listening.reduce((sum, lift) => sum + lift.pieces, 0);
    const whom = person ? "this person" : "you";
    const rested = game.rest ? " when rested" : "";
    const belief = `How often ${whom} ${person ? "acts" : "act"} because of the advice${rested}, as the machine estimates it, with its uncertainty.`;
    if (heard === 0) return `${belief} A guess so far: ${person ? "nobody has" : "you have"} heard no advice.`;
    return person ? `${person.about} ${belief} The mark ┃ is the truth.` : belief;
  }

  row(advice) {
    if (!this.rows.has(advice)) {
      const row = new ListeningRow(advice);
      this.rows.set(advice, row);
      this.find("listening").append(row.root);
    }
    return this.rows.get(advice);
  }

  showSpent(game) {
    const pips = game.budget === null ? game.spent : Math.max(game.budget, game.spent);
    const drawn = pips <= MANY ? "▲".repeat(game.spent) + "△".repeat(pips - game.spent) : "";
    this.find("spent").replaceChildren(element("span", { class: "pips", "aria-hidden": "true" }, [drawn]), spentWords(game));
  }
}

/** The small meter of how rested the player is taken to be: a bar and words; nothing if nobody tires. */
function showRest(root, rest) {
  root.classList.toggle("hidden", !rest);
  if (!rest) return root.replaceChildren();
  root.title = rest.sentence;
  const left = element("span", { class: "rest-left" });
  left.style.width = `${100 * rest.rested}%`;
  root.replaceChildren(
    element("span", { class: "rest-track", "aria-hidden": "true" }, [left]),
    element("span", {}, [`${percent(rest.rested)} rested`]),
    element("span", { class: "unseen" }, [`. ${rest.sentence}`]),
  );
}

function spentWords(game) {
  const spent = game.spent === 0 ? "No pieces yet" : count(game.spent, "piece");
  if (game.adviser === "never") return "This adviser never speaks.";
  if (game.budget !== null) return `${game.spent} of ${game.budget} ${game.budget === 1 ? "piece" : "pieces"}`;
  if (game.penalty !== null) return `${spent}; each must be worth more than ${short(game.penalty)} stars`;
  return `${spent}, one for each move`;
}

/** The row of one advice: a bar for the estimate, a whisker for its interval, a mark for the truth if known. */
class ListeningRow {
  constructor(advice) {
    this.fill = element("div", { class: "fill" });
    this.whisker = element("div", { class: "whisker" });
    this.truth = element("div", { class: "truth" });
    this.number = element("strong", {});
    this.detail = element("span", { class: "soft small" });
    this.root = element("div", { class: "listening-row" }, [
      element("span", {}, [advice]),
      element("div", { class: "track", "aria-hidden": "true" }, [this.fill, this.whisker, this.truth]),
      this.number,
      this.detail,
    ]);
  }

  show({ estimate, low, high, pieces, matched, truth }) {
    this.fill.style.width = `${100 * estimate}%`;
    this.whisker.style.left = `${100 * low}%`;
    this.whisker.style.width = `${100 * (high - low)}%`;
    this.truth.classList.toggle("hidden", truth === null);
    if (truth !== null) this.truth.style.left = `${100 * truth}%`;
    this.number.textContent = percent(estimate);
    const heard = pieces === 0 ? "no pieces yet" : `${matched} of ${pieces} matched`;
    const known = truth === null ? "" : `; truth ${percent(truth)}`;
    this.detail.textContent = `${Math.round(100 * low)} to ${percent(high)}; ${heard}${known}`;
    this.root.classList.toggle("unsure", pieces === 0);
  }
}
