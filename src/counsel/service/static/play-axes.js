// The axes of the small charts: round ticks, axes and lines.

import { short, svg } from "./common.js";

/** Return at most `many` round steps from zero up to `most`. */
export function ticks(most, many = 4) {
  const rough = most / many;
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((times) => times * power).find((candidate) => candidate >= rough) ?? 1;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
}

/** Axes with ticks: x below, y to the left with light lines across. */
export function axes({ x, y, xTicks, yTicks, box: [left, top, right, bottom], xName, yName }) {
  return [
    ...yTicks.map((value) => svg("path", { class: "axis-line", d: `M${left} ${y(value)}H${right}` })),
    ...yTicks.map((value) => svg("text", { class: "axis-text end", x: left - 6, y: y(value) + 4 }, [short(value)])),
    ...xTicks.map((value) => svg("text", { class: "axis-text middle", x: x(value), y: bottom + 15 }, [short(value)])),
    svg("text", { class: "axis-text end", x: right, y: bottom + 30 }, [xName]),
    svg("text", { class: "axis-text", x: 0, y: top - 9 }, [yName]),
  ];
}

/** Return a path through points. */
export function line(points) {
  return points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` : "";
}
