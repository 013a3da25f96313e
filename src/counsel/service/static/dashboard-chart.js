// A chart on the page, which shows exact values to pointer and keyboard, and the figure around it.

import { element, svg } from "./common.js";
import { foot } from "./dashboard-csv.js";

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/**
 * A chart is one stop of the tab key; arrow keys walk through its marks. A redraw keeps the selected mark.
 *
 * `draw(width)` returns `{ height, nodes, marks }`; a mark has a key, a position and a text (`head`, `body`).
 */
class Chart {
  constructor(label) {
    this.ring = svg("circle", { class: "ring", r: 7, visibility: "hidden" });
    this.tip = element("div", { class: "tip", role: "status" });
    this.picture = svg("svg", { "aria-hidden": "true" });
    this.box = element("div", { class: "chart", tabindex: "0", role: "group", "aria-roledescription": "chart",
      "aria-label": `${label}. Arrow keys read the values.` }, [this.picture, this.tip]);
    this.marks = [];
    this.selected = null;
    this.box.addEventListener("pointermove", (event) => this.point(event));
    this.box.addEventListener("pointerdown", (event) => this.point(event));
    // A finger leaves as soon as it is lifted: its mark stays selected until something else is touched.
    this.box.addEventListener("pointerleave", (event) => event.pointerType === "touch" || this.select(null));
    this.box.addEventListener("blur", () => this.select(null));
    this.box.addEventListener("keydown", (event) => this.press(event));
    new ResizeObserver(() => this.redraw()).observe(this.box);
  }

  show(draw) {
    this.draw = draw;
    this.width = null;
    this.redraw();
  }

  redraw() {
    // Drawn in units of the reader's font size, so that the lettering grows with it.
    this.zoom = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const width = Math.round(this.box.clientWidth / this.zoom);
    if (!this.draw || !width || width === this.width) return;
    this.width = width;
    const { height, nodes, marks } = this.draw(width);
    this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.picture.replaceChildren(...nodes, this.ring);
    this.marks = marks;
    this.select(marks.find((mark) => mark.key === this.selected)?.key ?? null);
  }

  point(event) {
    const frame = this.picture.getBoundingClientRect();
    const zoom = this.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * zoom, (event.clientY - frame.top) * zoom];
    // Where marks stand side by side, or below each other, the other direction has little weight.
    const far = (mark) => Math.hypot((mark.x - x) * (mark.across ?? 1), (mark.y - y) * (mark.along ?? 1));
    const nearest = this.marks.reduce((best, mark) => (!best || far(mark) < far(best) ? mark : best), null);
    this.select(nearest?.key ?? null);
  }

  press(event) {
    if (event.key === "Escape") this.select(null);
    const step = STEPS[event.key];
    if (step === undefined || !this.marks.length) return;
    event.preventDefault();
    const from = this.marks.findIndex((mark) => mark.key === this.selected);
    const to = from < 0 && step === 1 ? 0 : from + step;
    this.select(this.marks[Math.min(Math.max(to, 0), this.marks.length - 1)].key);
  }

  /** Show the text of a mark, or none. */
  select(key) {
    const mark = this.marks.find((candidate) => candidate.key === key);
    this.selected = mark ? key : null;
    this.ring.setAttribute("visibility", mark ? "visible" : "hidden");
    if (!mark) {
      this.tip.replaceChildren();
      return;
    }
    this.ring.setAttribute("cx", mark.x);
    this.ring.setAttribute("cy", mark.y);
    if (this.tip.textContent !== mark.head + mark.body) {
      this.tip.replaceChildren(element("b", {}, [mark.head]), element("span", {}, [mark.body]));
    }
    this.place(mark);
  }

  place(mark) {
    this.tip.style.left = "0";
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const [x, y] = [mark.x * this.zoom, mark.y * this.zoom];
    const above = y - height - 14;
    this.tip.style.left = `${Math.max(0, Math.min(x - width / 2, this.box.clientWidth - width))}px`;
    this.tip.style.top = `${above < -height / 2 ? y + 14 : above}px`;
  }
}

/** A figure: the finding as its heading, the chart, and its numbers as a file. */
export class Figure {
  constructor(definition) {
    this.definition = definition;
    this.heading = element("h2");
    this.chart = new Chart(definition.label);
    const below = foot(definition, () => ({ adviser: this.adviser, table: definition.table(this.summary) }));
    this.root = element("section", { class: "figure", id: definition.name, "data-place": "" }, [this.heading, this.chart.box, below]);
  }

  /** Show a summary; whatever is unchanged is left alone. */
  update(adviser, summary) {
    const { definition } = this;
    Object.assign(this, { adviser: adviser.name, summary });
    this.root.classList.toggle("hidden", !(definition.applies?.(summary) ?? true));
    const isEmpty = definition.isEmpty(summary);
    this.root.classList.toggle("empty", isEmpty);
    const headline = isEmpty ? definition.nothing : definition.headline(summary);
    const numbers = isEmpty ? "" : JSON.stringify([adviser.id, definition.table(summary)]);
    if (headline !== this.heading.textContent) this.heading.textContent = headline;
    if (numbers && numbers !== this.numbers) this.chart.show(definition.draw(summary));
    this.numbers = numbers;
  }
}
