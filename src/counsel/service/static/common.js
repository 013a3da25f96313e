// Shared by all pages: requests, the API key, elements, scales, and the formatting of numbers.

const KEY = "counsel-key";

/** Send a request; return the answer, or throw an Error with the service's message. */
export async function ask(path, { method = "GET", body } = {}) {
  const headers = {};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The service does not answer. Is it running?");
  }
  if (answer.status === 401) {
    await askForKey(key ? "This key does not work here." : "This service needs a key.");
    return ask(path, { method, body });
  }
  if (answer.status === 204) return null;
  const type = answer.headers.get("Content-Type") ?? "";
  const content = type.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(content.detail ?? `The service answered ${answer.status}.`);
  return content;
}

/** Save an answer of the service as a file: a link cannot carry the key. */
export async function download(path, name) {
  const content = await ask(path);
  save(typeof content === "string" ? content : JSON.stringify(content), name);
}

export function save(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

let asking = null;

function askForKey(why) {
  asking ??= new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const form = element("form", { method: "dialog" }, [
      element("h2", {}, ["Enter a key"]),
      element("p", {}, [`${why} “counsel keys add” creates one. It is kept in this tab only.`]),
      element("label", {}, ["Key ", element("input", { name: "key", type: "password", autocomplete: "off", required: "" })]),
      element("p", {}, [element("button", { class: "main" }, ["Continue"])]),
    ]);
    form.addEventListener("submit", (event) => {
      event.preventDefault(); // The dialog is removed, not closed.
      sessionStorage.setItem(KEY, form.elements.key.value.trim());
      dialog.remove();
      asking = null;
      resolve();
    });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

/** Create an element; children that are strings become text, never markup. */
export const element = (name, attributes = {}, children = []) => filled(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, children = []) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

/** Return a linear scale from numbers to positions. */
export function scale([from, to], [start, end]) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

/** Return round numbers that cover a range with about `count` steps; the first and last may lie outside of it. */
export function ticks(from, to, count) {
  const rough = (to - from || Math.abs(to) || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.floor(from / step + 1e-9);
  const last = Math.max(Math.ceil(to / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Format a number with three significant digits. */
export function short(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const rounded = Number(number.toPrecision(3));
  return rounded.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−");
}

export const signed = (number) => (number > 0 ? `+${short(number)}` : short(number));

/** Format a share as a percentage. */
export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)}\u00a0%`);
