// The tutorial: three short cards on the first visit, which can be skipped and opened again.

import { element, svg } from "./common.js";
import { load, store } from "./play-storage.js";
import { bird, ghostBird, star } from "./play-sprites.js";

const at = (x, y, children) => svg("g", { transform: `translate(${x} ${y})` }, children);
const arrow = (name, x, y, angle) => at(x, y, [svg("path", { class: name, transform: `rotate(${angle})`, d: "M17 0H36M29 -6.5L37 0L29 6.5" })]);

const CARDS = [
  {
    title: "You fly the bird",
    text: "Each move takes it one column to the right: Up one row, Up-Up two, Down one. Use ↑, Shift ↑ and ↓, or the buttons. Stars count; a wall or an edge ends the flight. The game waits for you.",
    draw: () => [at(70, 60, [bird()]), arrow("welcome-way", 70, 60, -45), arrow("welcome-way", 70, 60, 45), at(118, 20, [star()]), at(160, 60, [star()]), at(202, 90, [star()])],
  },
  {
    title: "A machine watches",
    text: "Where it expects to help, it shows an arrow ▲ and says why. Where it expects not to, it stays silent ●. Press “Why?” for its reasons.",
    draw: () => [at(70, 76, [bird()]), arrow("ghost-arrow", 70, 76, -45), at(114, 34, [ghostBird()]), at(186, 60, [bird()]), at(186, 60, [svg("circle", { class: "hush-dot", cy: -26, r: 5 })])],
  },
  {
    title: "You may ignore it",
    text: "It is advice, not an order. From your moves the machine learns how much you listen, and spends its advice where that pays. The panel shows what it thinks of you.",
    draw: () => [at(80, 56, [bird()]), arrow("ghost-arrow", 80, 56, -45), arrow("welcome-way", 80, 56, 45), at(132, 96, [star()]), at(190, 56, [svg("path", { class: "path-mark untaken", d: "M0 -13L12.4 9.2L-12.4 9.2Z" })])],
  },
];

export class Tutorial {
  constructor(dialog, closed) {
    this.dialog = dialog;
    dialog.addEventListener("close", closed);
  }

  /** Show the cards if this browser has not shown them yet. */
  openOnce() {
    if (load("welcomed")) return;
    store("welcomed", true);
    this.open();
  }

  open() {
    this.turnTo(0);
    this.dialog.showModal();
  }

  turnTo(index) {
    const { title, text, draw } = CARDS[index];
    const last = index === CARDS.length - 1;
    const next = element("button", { type: "button", class: "main", autofocus: "" }, [last ? "Play" : "Next"]);
    const skip = element("button", { type: "button", class: "plain" }, ["Skip"]);
    next.addEventListener("click", () => (last ? this.dialog.close() : this.turnTo(index + 1)));
    skip.addEventListener("click", () => this.dialog.close());
    this.dialog.replaceChildren(
      svg("svg", { class: "welcome-picture", viewBox: "0 0 260 120", "aria-hidden": "true" }, draw()),
      element("p", { class: "soft small" }, [`${index + 1} of ${CARDS.length}`]),
      element("h2", { id: "welcome-title" }, [title]),
      element("p", {}, [text]),
      element("p", { class: "buttons" }, last ? [next] : [next, skip]),
    );
    if (this.dialog.open) next.focus();
  }
}
