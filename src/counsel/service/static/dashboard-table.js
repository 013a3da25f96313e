// A table on the page.

import { element } from "./common.js";
import { foot } from "./dashboard-csv.js";

/** A table on the page whose rows come and go without disturbing the others. */
export class Table {
  constructor(plan) {
    this.plan = plan;
    this.heading = element("h2");
    this.body = element("tbody", { role: "rowgroup" });
    this.rows = new Map();
    const head = plan.columns.map(([name, kind = ""]) => element("th", { scope: "col", role: "columnheader", class: kind }, [name]));
    const table = element("table", { role: "table" },
      [element("thead", { role: "rowgroup" }, [element("tr", { role: "row" }, head)]), this.body]);
    const box = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": plan.label }, [table]);
    this.rest = element("button", { type: "button", class: "rest", "aria-expanded": "false" });
    this.rest.addEventListener("click", () => this.turnOver());
    const below = foot(plan, () => ({ adviser: this.adviser, table: plan.table(this.items) }), [this.rest]);
    this.root = element("section", { class: "listing", id: plan.name, "data-place": "" }, [this.heading, box, below]);
  }

  /** Show a summary; rows that have not changed stay as they are, open or focused. */
  update(adviser, summary) {
    const { plan } = this;
    const items = plan.items(summary);
    Object.assign(this, { adviser: adviser.name, items });
    this.root.classList.toggle("empty", !items.length);
    const told = items.length ? plan.headline(items) : plan.nothing;
    if (told !== this.heading.textContent) this.heading.textContent = told;
    const rows = new Map(items.map((item) => this.keep(item, { all: items, settings: adviser.settings, id: adviser.id })));
    for (const [key, { line }] of this.rows) if (rows.get(key)?.line !== line) line.remove();
    this.rows = rows;
    let next = this.body.firstElementChild;
    [...rows.values()].forEach(({ line }, i) => {
      line.classList.toggle("later", i >= plan.first);
      if (line === next) next = next.nextElementSibling;
      else this.body.insertBefore(line, next);
    });
    this.offerRest();
  }

  /** Show all rows, or the first ones only. */
  turnOver() {
    const all = this.root.classList.toggle("all");
    this.rest.setAttribute("aria-expanded", String(all));
    this.offerRest();
  }

  offerRest() {
    const { items, plan, rest, root } = this;
    const told = root.classList.contains("all") ? `Only the newest ${plan.first}` : `All ${items.length}`;
    if (rest.textContent !== told) rest.textContent = told;
    rest.classList.toggle("hidden", items.length <= plan.first);
  }

  /** The row of an item: the one that is there, or a new one that takes over what was open and focused. */
  keep(item, told) {
    const key = this.plan.key(item);
    const content = this.plan.row(item, told);
    const line = element("tr", { role: "row", "data-place": "" }, content.map((cell, i) => {
      const [name, kind = ""] = this.plan.columns[i];
      return element("td", { role: "cell", class: kind, "data-name": name }, [cell]);
    }));
    const text = JSON.stringify([told.id, line.innerHTML]);
    const old = this.rows.get(key);
    if (old?.text === text) return [key, old];
    if (old) takeOver(old.line, line);
    return [key, { line, text }];
  }
}

function takeOver(old, line) {
  const [before, button] = [old.querySelector(".more"), line.querySelector(".more")];
  if (!before || !button) return;
  if (before.getAttribute("aria-expanded") === "true") unfold(button, true);
  if (before === document.activeElement) queueMicrotask(() => button.focus({ preventScroll: true }));
}

/** Open what stands behind a button, or close it. */
export function unfold(button, opened) {
  button.setAttribute("aria-expanded", String(opened));
  button.nextElementSibling.hidden = !opened;
}
