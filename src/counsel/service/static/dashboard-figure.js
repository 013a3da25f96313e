// A figure on the page: the finding, the chart, and its numbers as a file.

import { element } from "./common.js";
import { Chart } from "./dashboard-chart.js";
import { foot } from "./dashboard-csv.js";

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
    const isEmpty = definition.isEmpty(summary);
    this.root.classList.toggle("empty", isEmpty);
    const headline = isEmpty ? definition.nothing : definition.headline(summary);
    const numbers = isEmpty ? "" : JSON.stringify([adviser.id, definition.table(summary)]);
    if (headline !== this.heading.textContent) this.heading.textContent = headline;
    if (numbers && numbers !== this.numbers) this.chart.show(definition.draw(summary));
    this.numbers = numbers;
  }
}
