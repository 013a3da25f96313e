// Tables as CSV, built in the browser from what is on the page.

import { element, save } from "./common.js";

/** Rows as CSV text with a header. */
function csv({ head, rows }) {
  return [head, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

// Labels are other people's text: a spreadsheet must not take one for a formula.
function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A file name that says what is in it and from whom. */
export function fileName(adviser, what) {
  const plain = adviser.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 40);
  return `${plain || "adviser"}-${what}.csv`;
}

/** What stands below a chart or table: its note, other controls, and a button that saves the numbers. */
export function foot({ name, label, note }, behind, controls = []) {
  const button = element("button", { type: "button", class: "csv", "aria-label": `${label}: numbers as CSV` }, ["CSV ↓"]);
  button.addEventListener("click", () => {
    const { adviser, table } = behind();
    save(csv(table), fileName(adviser, name));
  });
  return element("p", { class: "foot soft" }, [element("span", {}, [note]), ...controls, button]);
}
