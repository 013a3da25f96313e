// The dashboard: which adviser is shown, and the numbers kept fresh.

import { ask, download, element } from "./common.js";
import { fileName } from "./dashboard-csv.js";
import { strip } from "./dashboard-drawings.js";
import { Figure } from "./dashboard-figure.js";
import { FRONTIER, SMALL } from "./dashboard-figures.js";
import { keepPlace } from "./dashboard-place.js";
import { second } from "./dashboard-axes.js";
import { Table } from "./dashboard-table.js";
import { RECENT, WHERE } from "./dashboard-tables.js";
import * as words from "./dashboard-words.js";

const EVERY = 5000;
const LISTED_FOR = 30000;

const at = (id) => document.getElementById(id);

const small = SMALL.map((plan) => new Figure(plan));
const [pays, frontier, decisions] = [new Table(WHERE), new Figure(FRONTIER), new Table(RECENT)];
const parts = [...small, pays, frontier, decisions];

let advisers = [];
let listed = -Infinity;
let shown = null;
let paused = false;
let timer = null;
let fresh = 0;
let turns = 0;

/** Ask for what is wanted now and show it; then again in a while. Only the latest turn counts. */
async function turn() {
  clearTimeout(timer);
  const mine = ++turns;
  try {
    if (isListOld()) await list();
    if (mine !== turns) return;
    const adviser = choose();
    if (adviser) {
      const summary = await ask(`/v1/advisers/${encodeURIComponent(adviser.id)}/summary`);
      if (mine !== turns) return;
      show(adviser, summary);
    }
  } catch (fault) {
    if (mine === turns) tell(`${fault.message} The numbers below may be old.`);
  }
  if (mine === turns && !paused && !document.hidden) timer = setTimeout(turn, EVERY);
}

function isListOld() {
  return performance.now() - listed > LISTED_FOR || !advisers.some(({ id }) => id === wanted());
}

async function list() {
  advisers = await ask("/v1/advisers");
  listed = performance.now();
  offer();
}

/** The adviser that the address asks for. */
function wanted() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

/** The adviser to show; without one, say what to do instead. */
function choose() {
  at("welcome").classList.toggle("hidden", advisers.length > 0);
  if (!advisers.length) {
    at("study").classList.add("hidden");
    document.title = "Counsel";
    tell("");
    return null;
  }
  if (!wanted()) history.replaceState(null, "", `#${encodeURIComponent(advisers[0].id)}`);
  const found = advisers.find(({ id }) => id === wanted());
  at("adviser").value = found?.id ?? "";
  if (!found) {
    at("study").classList.add("hidden");
    tell(`There is no adviser ${words.quoted(wanted())} here; choose one above.`);
  }
  return found ?? null;
}

/** Fill the choice of advisers; those with the same name are told apart by their ids. */
function offer() {
  const names = advisers.map(({ name }) => name);
  const isTwice = (name) => names.indexOf(name) !== names.lastIndexOf(name);
  const options = advisers.map(({ id, name }) => ({ id, text: isTwice(name) ? `${name} (${id.slice(0, 8)})` : name }));
  const select = at("adviser");
  const before = [...select.options].map((option) => ({ id: option.value, text: option.textContent }));
  for (const one of ["choice", "pace"]) at(one).classList.toggle("hidden", !advisers.length);
  if (JSON.stringify(options) === JSON.stringify(before)) return;
  select.replaceChildren(...options.map(({ id, text }) => element("option", { value: id }, [text])));
}

function show(adviser, summary) {
  at("study").classList.remove("hidden");
  document.title = `${adviser.name} · Counsel`;
  keepPlace(() => {
    write("about", words.about(adviser));
    write("finding", words.finding(summary));
    write("lead", words.basis(summary));
    showThree(words.three(summary));
    for (const part of parts) part.update(adviser, summary);
    showUnknown(summary);
  });
  if (shown !== adviser.id) {
    write("news", `${adviser.name}: ${words.finding(summary)}`);
    if (shown) scrollTo({ top: 0, behavior: "instant" });
  }
  shown = adviser.id;
  fresh = Date.now() / 1000;
  tell("");
  tellPace();
}

function write(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function showThree(numbers) {
  const made = numbers.map((one) => element("div", {}, [
    element("p", { class: "figure-number" }, [one.figure]), element("p", { class: "what" }, [one.what]),
    ...(one.strip ? [strip(one.strip)] : []), element("p", { class: "soft" }, [one.behind])]));
  const old = at("three");
  made.forEach((one, i) => {
    if (!old.children[i]) old.append(one);
    else if (old.children[i].outerHTML !== one.outerHTML) old.children[i].replaceWith(one);
  });
}

function showUnknown(summary) {
  const [heading, items] = at("unknown").children;
  heading.textContent = words.notKnown(summary);
  items.replaceChildren(...summary.unknown.map((sentence) => element("li", {}, [sentence])));
}

/** Say what went wrong, once; an empty sentence takes it away. */
function tell(sentence) {
  write("trouble", sentence);
  at("trouble").classList.toggle("hidden", !sentence);
}

function tellPace() {
  write("fresh", paused ? `Paused; numbers of ${second(fresh)}` : `Every ${EVERY / 1000} s; last ${second(fresh)}`);
}

function pause() {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", String(paused));
  if (paused) {
    clearTimeout(timer);
    turns += 1;
    tellPace();
  } else turn();
}

async function saveLog() {
  const adviser = advisers.find(({ id }) => id === shown);
  try {
    await download(`/v1/advisers/${encodeURIComponent(adviser.id)}/log?format=csv`, fileName(adviser.name, "log"));
  } catch (fault) {
    tell(fault.message);
  }
}

at("figures").append(...small.map(({ root }) => root));
at("pays").append(pays.root, frontier.root);
at("decisions").append(decisions.root);
write("recipe", [`curl -X POST ${location.origin}/v1/advisers \\`, "  -H 'Content-Type: application/json' \\",
  `  -d '{"name":"alerts","source":"ward","budget":1,"hard":true}'`].join("\n"));
at("adviser").addEventListener("change", (event) => { location.hash = encodeURIComponent(event.target.value); });
at("pause").addEventListener("click", pause);
at("log").addEventListener("click", saveLog);
addEventListener("hashchange", turn);
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) turn(); });
turn();
