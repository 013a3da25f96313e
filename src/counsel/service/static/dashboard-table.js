// A table on the page, whose rows come and go without disturbing the others.

import { element } from "./common.js";
import { foot } from "./dashboard-csv.js";

export class Table {
  constructor(definition) {
    this.definition = definition;
    this.heading = element("h2");
    this.body = element("tbody", { role: "rowgroup" });
    this.rows = new Map();
    const head = definition.columns.map(([name, kind = ""]) => element("th", { scope: "col", role: "columnheader", class: kind }, [name]));
    const table = element("table", { role: "table" },
      [element("thead", { role: "rowgroup" }, [element("tr", { role: "row" }, head)]), this.body]);
    const box = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": definition.label }, [table]);
    this.rest = element("button", { type: "button", class: "rest", "aria-expanded": "false" });
    this.rest.addEventListener("click", () => this.toggleRest());
    const below = foot(definition, () => ({ adviser: this.adviser, table: definition.table(this.items) }), [this.rest]);
    this.root = element("section", { class: "listing", id: definition.name, "data-place": "" }, [this.heading, box, below]);
  }

  /** Show a summary; rows that have not changed stay as they are, open or focused. */
  update(adviser, summary) {
    const { definition } = this;
    const items = definition.items(summary);
    Object.assign(this, { adviser: adviser.name, items });
    this.root.classList.toggle("empty", !items.length);
    const headline = items.length ? definition.headline(items) : definition.nothing;
    if (headline !== this.heading.textContent) this.heading.textContent = headline;
    const rows = new Map(items.map((item) => this.keep(item, { all: items, settings: adviser.settings, id: adviser.id })));
    for (const [key, { line }] of this.rows) if (rows.get(key)?.line !== line) line.remove();
    this.rows = rows;
    let next = this.body.firstElementChild;
    [...rows.values()].forEach(({ line }, i) => {
      line.classList.toggle("later", i >= definition.first);
      if (line === next) next = next.nextElementSibling;
      else this.body.insertBefore(line, next);
    });
    this.labelRest();
  }

  /** Show all rows, or the first ones only. */
  toggleRest() {
    const all = this.root.classList.toggle("all");
    this.rest.setAttribute("aria-expanded", String(all));
    this.labelRest();
  }

  labelRest() {
    const { items, definition, rest, root } = this;
    const label = root.classList.contains("all") ? `Only the newest ${definition.first}` : `All ${items.length}`;
    if (rest.textContent !== label) rest.textContent = label;
    rest.classList.toggle("hidden", items.length <= definition.first);
  }

  /** Return the row of an item: the existing row, or a new one that takes over what was open and focused. */
  keep(item, context) {
    const key = this.definition.key(item);
    const content = this.definition.row(item, context);
    const line = element("tr", { role: "row", "data-place": "" }, content.map((cell, i) => {
      const [name, kind = ""] = this.definition.columns[i];
      return element("td", { role: "cell", class: kind, "data-name": name }, [cell]);
    }));
    const text = JSON.stringify([context.id, line.innerHTML]);
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

/** Open or close what follows a button. */
export function unfold(button, opened) {
  button.setAttribute("aria-expanded", String(opened));
  button.nextElementSibling.hidden = !opened;
}
