// The dashboard: the choice of the adviser, and its numbers kept up to date.

import { ask, download, element } from "./common.js";
import { fileName } from "./dashboard-csv.js";
import { strip } from "./dashboard-chart-types.js";
import { Figure } from "./dashboard-chart.js";
import { FRONTIER, SMALL } from "./dashboard-chart-definitions.js";
import { keepScroll } from "./dashboard-scroll.js";
import { second } from "./dashboard-times.js";
import { Table } from "./dashboard-table.js";
import { RECENT, WHERE } from "./dashboard-table-definitions.js";
import * as sentences from "./dashboard-sentences.js";

const EVERY = 5000;
const LISTED_FOR = 30000;

const at = (id) => document.getElementById(id);

const small = SMALL.map((definition) => new Figure(definition));
const [pays, frontier, decisions] = [new Table(WHERE), new Figure(FRONTIER), new Table(RECENT)];
const parts = [...small, pays, frontier, decisions];

let [advisers, listed, shown] = [[], -Infinity, null];
let [paused, timer, fresh, refreshes] = [false, null, 0, 0];

/** Request what the address asks for and show it, and again after a while. Only the latest refresh counts. */
async function refresh() {
  clearTimeout(timer);
  const mine = ++refreshes;
  try {
    if (isListOld()) {
      advisers = await ask("/v1/advisers");
      listed = performance.now();
      fillChoice();
    }
    if (mine !== refreshes) return;
    const adviser = choose();
    if (adviser) {
      const summary = await ask(`/v1/advisers/${encodeURIComponent(adviser.id)}/summary`);
      if (summary.shared_limit || summary.by_level) await addOccasional();
      if (mine !== refreshes) return;
      show(adviser, summary);
    }
  } catch (fault) {
    if (mine === refreshes) showTrouble(`${fault.message} The numbers below may be old.`);
  }
  if (mine === refreshes && !paused && !document.hidden) timer = setTimeout(refresh, EVERY);
}

const isListOld = () => performance.now() - listed > LISTED_FOR || !advisers.some(({ id }) => id === wanted());

/** The adviser that the address asks for. */
function wanted() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

/** Return the adviser to show; without one, say what to do instead. */
function choose() {
  at("welcome").classList.toggle("hidden", advisers.length > 0);
  if (!advisers.length) {
    at("study").classList.add("hidden");
    document.title = "Counsel";
    showTrouble("");
    return null;
  }
  if (!wanted()) history.replaceState(null, "", `#${encodeURIComponent(advisers[0].id)}`);
  const adviser = advisers.find(({ id }) => id === wanted());
  at("adviser").value = adviser?.id ?? "";
  if (!adviser) {
    at("study").classList.add("hidden");
    showTrouble(`There is no adviser ${sentences.quoted(wanted())} here; choose one above.`);
  }
  return adviser ?? null;
}

/** Add the figures that few advisers have; once is enough. */
async function addOccasional() {
  const { OCCASIONAL } = await import("./dashboard-occasional.js");
  for (const definition of OCCASIONAL.filter(({ name }) => !at(name))) {
    const figure = new Figure(definition);
    at(definition.after).after(figure.root);
    parts.push(figure);
  }
}

/** Fill the choice of advisers; advisers of the same name show their ids. */
function fillChoice() {
  const names = advisers.map(({ name }) => name);
  const isTwice = (name) => names.indexOf(name) !== names.lastIndexOf(name);
  const options = advisers.map(({ id, name }) => ({ id, text: isTwice(name) ? `${name} (${id.slice(0, 8)})` : name }));
  const select = at("adviser");
  const before = [...select.options].map((option) => ({ id: option.value, text: option.textContent }));
  for (const id of ["choice", "pace"]) at(id).classList.toggle("hidden", !advisers.length);
  if (JSON.stringify(options) === JSON.stringify(before)) return;
  select.replaceChildren(...options.map(({ id, text }) => element("option", { value: id }, [text])));
}

function show(adviser, summary) {
  at("study").classList.remove("hidden");
  document.title = `${adviser.name} · Counsel`;
  keepScroll(() => {
    write("about", sentences.about(adviser));
    write("finding", sentences.finding(summary));
    write("lead", sentences.basis(summary));
    showThree(sentences.three(summary));
    write("looks", sentences.twoRanges(summary));
    for (const part of parts) part.update(adviser, summary);
    showUnknown(summary);
  });
  if (shown !== adviser.id) {
    write("news", `${adviser.name}: ${sentences.finding(summary)}`);
    if (shown) scrollTo({ top: 0, behavior: "instant" });
  }
  shown = adviser.id;
  fresh = Date.now() / 1000;
  showTrouble("");
  showPace();
}

function write(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text;
}

function showThree(numbers) {
  const parent = at("three");
  numbers.forEach(({ figure, what, strip: interval, behind }, i) => {
    const box = element("div", {}, [
      element("p", { class: "figure-number" }, [figure]), element("p", { class: "what" }, [what]),
      ...(interval ? [strip(interval)] : []), element("p", { class: "soft" }, [behind])]);
    const old = parent.children[i];
    if (!old) parent.append(box);
    else if (old.outerHTML !== box.outerHTML) old.replaceWith(box);
  });
}

function showUnknown(summary) {
  const [heading, items] = at("unknown").children;
  heading.textContent = sentences.notKnown(summary);
  items.replaceChildren(...summary.unknown.map((sentence) => element("li", {}, [sentence])));
}

/** Show what went wrong; an empty sentence hides it. */
function showTrouble(sentence) {
  write("trouble", sentence);
  at("trouble").classList.toggle("hidden", !sentence);
}

function showPace() {
  write("fresh", paused ? `Paused; numbers as of ${second(fresh)}` : `Every ${EVERY / 1000} s; last at ${second(fresh)}`);
}

function pause() {
  paused = !paused;
  at("pause").setAttribute("aria-pressed", String(paused));
  if (paused) {
    clearTimeout(timer);
    refreshes += 1;
    showPace();
  } else refresh();
}

async function saveLog() {
  const adviser = advisers.find(({ id }) => id === shown);
  try {
    await download(`/v1/advisers/${encodeURIComponent(adviser.id)}/log?format=spreadsheet`, fileName(adviser.name, "log"));
  } catch (fault) {
    showTrouble(fault.message);
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
addEventListener("hashchange", refresh);
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) refresh(); });
refresh();
