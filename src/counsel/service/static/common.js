// What all pages share: asking the service, the key, elements, scales, and numbers as people read them.

const KEY = "counsel-key";

/** Ask the service; the answer as JSON, or an Error with the service's own sentence. */
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
    await askForKey(key ? "This key does not work here." : "This service asks for a key.");
    return ask(path, { method, body });
  }
  if (answer.status === 204) return null;
  const type = answer.headers.get("Content-Type") ?? "";
  const told = type.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(told.detail ?? `The service answered ${answer.status}.`);
  return told;
}

/** Save what the service answers as a file: a link cannot carry the key. */
export async function download(path, name) {
  const told = await ask(path);
  save(typeof told === "string" ? told : JSON.stringify(told), name);
}

/** Save text as a file. */
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
      element("h2", {}, ["A key, please"]),
      element("p", {}, [`${why} “counsel keys add” makes one. It stays in this tab only.`]),
      element("label", {}, ["Key ", element("input", { name: "key", type: "password", autocomplete: "off", required: "" })]),
      element("p", {}, [element("button", { class: "main" }, ["Go on"])]),
    ]);
    form.addEventListener("submit", () => {
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

/** Make an element; children that are strings become text, never markup. */
export function element(name, attributes = {}, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Make an SVG element. */
export function svg(name, attributes = {}, children = []) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A straight map of numbers to places. */
export function scale([from, to], [start, end]) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

/** A number to three significant digits, as people write it. */
export function short(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "–";
  const rounded = Number(number.toPrecision(3));
  return rounded.toLocaleString("en", { maximumSignificantDigits: 3 }).replace("-", "−");
}

/** A number with its sign. */
export function signed(number) {
  return number > 0 ? `+${short(number)}` : short(number);
}

/** A share as a percentage. */
export function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.round(100 * share)}\u00a0%`;
}
