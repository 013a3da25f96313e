// The line in which the machine speaks or stays silent, and its reasons on demand.

import { element, percent, short, signed } from "./common.js";
import { sign } from "./play-words.js";

const REASONS = [
  ["gain", "What this advice would gain", (value) => `${signed(value)} stars`],
  ["advantage", "What taking it is worth", (value) => `${signed(value)} stars`],
  ["lift", "Share of it that moves the player", percent],
  ["price", "What a piece must be worth", (value) => `${short(value)} stars`],
];

export class AdviceLine {
  constructor(find, moves) {
    this.find = find;
    this.moves = moves;
    this.root = find("advice");
    this.why = find("why");
    this.open = false;
    this.why.addEventListener("click", () => this.explain(!this.open));
  }

  show(game) {
    this.given = game.advice;
    const said = game.advice?.advice ?? null;
    this.root.classList.toggle("speaks", said !== null);
    this.root.classList.toggle("silent", said === null);
    const move = this.moves.find((one) => one.label === said);
    this.write(move ? sign(move.rows) : "●", said === null ? "The machine is silent." : game.advice.sentence);
    this.why.classList.toggle("hidden", game.advice === null);
    this.explain(this.open);
  }

  /** Say that the machine is not ready yet. */
  wait() {
    this.root.classList.remove("speaks");
    this.why.classList.add("hidden");
    this.find("reasons").classList.add("hidden");
    this.write("…", "The machine looks at the map.");
  }

  /** Say how a watched game ended, where the next one follows by itself. */
  conclude(sentence) {
    this.root.classList.remove("speaks");
    this.write("★", sentence);
  }

  /** What a screen reader hears after a move. */
  spoken() {
    if (!this.given) return "";
    return this.given.advice === null ? "No advice." : `Advice: ${this.given.sentence}`;
  }

  write(mark, words) {
    this.root.querySelector(".advice-sign").textContent = mark;
    this.root.querySelector(".advice-text").textContent = words;
  }

  explain(open) {
    this.open = open;
    this.why.setAttribute("aria-expanded", String(open));
    this.why.textContent = open ? "Less" : "Why?";
    const reasons = this.find("reasons");
    reasons.classList.toggle("hidden", !open || !this.given);
    if (open && this.given) reasons.replaceChildren(...reasonsOf(this.given));
  }
}

function reasonsOf(given) {
  const rows = REASONS.filter(([name]) => given[name] !== null && given[name] !== undefined);
  const numbers = rows.flatMap(([name, words, write]) => [element("dt", {}, [words]), element("dd", {}, [write(given[name])])]);
  const sentence = given.advice === null ? [element("p", {}, [given.sentence])] : [];
  return [...sentence, element("dl", {}, numbers)];
}
