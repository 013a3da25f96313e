// A figure on the page.

import { element } from "./common.js";
import { Chart } from "./dashboard-chart.js";
import { foot } from "./dashboard-csv.js";

/** One figure on the page: what it finds, the chart, and the numbers to take away. */
export class Figure {
  constructor(plan) {
    this.plan = plan;
    this.heading = element("h2");
    this.chart = new Chart(plan.label);
    const below = foot(plan, () => ({ adviser: this.adviser, table: plan.table(this.summary) }));
    this.root = element("section", { class: "figure", id: plan.name, "data-place": "" }, [this.heading, this.chart.box, below]);
  }

  /** Show a summary; what has not changed is left alone. */
  update(adviser, summary) {
    const { plan } = this;
    Object.assign(this, { adviser: adviser.name, summary });
    const empty = plan.isEmpty(summary);
    this.root.classList.toggle("empty", empty);
    const told = empty ? plan.nothing : plan.headline(summary);
    const behind = empty ? "" : JSON.stringify([adviser.id, plan.table(summary)]);
    if (told !== this.heading.textContent) this.heading.textContent = told;
    if (behind && behind !== this.behind) this.chart.show(plan.draw(summary));
    this.behind = behind;
  }
}
