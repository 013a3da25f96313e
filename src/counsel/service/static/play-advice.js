// The line with the advice, or with silence, and the reasons on demand.

import { element, percent, short, signed } from "./common.js";
import { sign } from "./play-sentences.js";

const REASONS = [
  ["gain", "What this advice would gain", (value) => `${signed(value)} stars`],
  ["advantage", "What the advised move is worth", (value) => `${signed(value)} stars`],
  ["lift", "How often the player acts because of it", percent],
  ["burden", "What speaking now costs of later listening", (value) => `${short(value)} stars`],
  ["price", "What a piece must be worth", (value) => `${short(value)} stars`],
];

export class AdviceLine {
  constructor(find, moves) {
    Object.assign(this, { find, moves, root: find("advice"), why: find("why"), open: false });
    this.why.addEventListener("click", () => this.explain(!this.open));
  }

  show(game) {
    this.line = game.advice;
    const advice = game.advice?.advice ?? null;
    this.root.classList.toggle("speaks", advice !== null);
    this.root.classList.toggle("silent", advice === null);
    const move = this.moves.find(({ label }) => label === advice);
    this.write(move ? sign(move.rows) : "●", advice === null ? "The machine is silent." : game.advice.sentence);
    this.why.classList.toggle("hidden", game.advice === null);
    this.explain(this.open);
  }

  /** Show that the machine is not ready yet. */
  wait() {
    this.root.classList.remove("speaks");
    this.why.classList.add("hidden");
    this.find("reasons").classList.add("hidden");
    this.write("…", "The machine is looking at the map.");
  }

  /** Show how a watched game ended, before the next game starts by itself. */
  conclude(sentence) {
    this.root.classList.remove("speaks");
    this.write("★", sentence);
  }

  /** Return what a screen reader says after a move. */
  spoken() {
    if (!this.line) return "";
    return this.line.advice === null ? "No advice." : `Advice: ${this.line.sentence}`;
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
    reasons.classList.toggle("hidden", !open || !this.line);
    if (open && this.line) reasons.replaceChildren(...reasonsOf(this.line));
  }
}

function reasonsOf(line) {
  const rows = REASONS.filter(([name]) => line[name] !== null && line[name] !== undefined);
  const numbers = rows.flatMap(([name, words, write]) => [element("dt", {}, [words]), element("dd", {}, [write(line[name])])]);
  const sentence = line.advice === null ? [element("p", {}, [line.sentence])] : [];
  return [...sentence, element("dl", {}, numbers)];
}
