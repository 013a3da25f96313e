// CSV files of the numbers on the page, written in the browser.

import { element, save } from "./common.js";

const csv = ({ head, rows }) => [head, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";

// Labels come from outside: a spreadsheet must not take them for formulas.
function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function fileName(adviser, what) {
  const plain = adviser.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 40);
  return `${plain || "adviser"}-${what}.csv`;
}

/** Return the foot of a chart or table: its note, other controls, and a button that saves the numbers. */
export function foot({ name, label, note }, numbers, controls = []) {
  const button = element("button", { type: "button", class: "csv", "aria-label": `${label}: numbers as CSV` }, ["CSV ↓"]);
  button.addEventListener("click", () => {
    const { adviser, table } = numbers();
    save(csv(table), fileName(adviser, name));
  });
  return element("p", { class: "foot soft" }, [element("span", {}, [note]), ...controls, button]);
}
