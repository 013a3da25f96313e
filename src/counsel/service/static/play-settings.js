// The settings of a game: who plays, the map, the adviser and its price, the pace.

import { element, short } from "./common.js";
import { load, playerName, store } from "./play-storage.js";
import { count, title } from "./play-sentences.js";

const STORED = ["map", "adviser", "budget", "penalty", "tires", "pace"];

export class Settings {
  constructor(form, menu, world, changed) {
    Object.assign(this, { form, menu, fields: form.elements, people: world.people });
    fill(this.fields.map, world.maps.map(({ name }) => [name, title(name)]));
    fill(this.fields.person, world.people.map((person) => [person.name, person.title]));
    this.restore();
    this.refresh();
    form.addEventListener("input", () => this.refresh());
    form.addEventListener("change", (event) => {
      if (event.target.name === "person") this.matchTiring();
      store("settings", Object.fromEntries(STORED.map((name) => [name, this.fields[name].value])));
      changed(event.target.name);
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    menu.addEventListener("click", () => this.open(!form.classList.contains("open")));
  }

  /** Open or close the settings where the screen has no room to show them always. */
  open(open) {
    this.form.classList.toggle("open", open);
    this.menu.setAttribute("aria-expanded", String(open));
  }

  request() {
    const { map, adviser, budget, penalty, person, tires } = this.fields;
    return {
      map: map.value,
      adviser: ["budget", "penalty"].includes(adviser.value) ? "aware" : adviser.value,
      budget: adviser.value === "budget" ? Number(budget.value) : null,
      penalty: adviser.value === "penalty" ? Number(penalty.value) : null,
      player: playerName(),
      person: person.value || null,
      tires: tires.value === "tires",
    };
  }

  /** Seconds per move, or 0 where the game waits. */
  get seconds() {
    return this.fields.person.value ? 0 : Number(this.fields.pace.value);
  }

  /** Let a simulated person play, or with "" the player. */
  seat(person) {
    this.fields.person.value = person;
    this.matchTiring();
    this.refresh();
  }

  /** Take a simulated person as they are; whoever watches may still choose otherwise. */
  matchTiring() {
    const person = this.people.find(({ name }) => name === this.fields.person.value);
    if (person) this.fields.tires.value = person.tires ? "tires" : "";
  }

  /** Label the sliders and hide what does not apply. */
  refresh() {
    const { adviser, budget, penalty, person } = this.fields;
    this.fields["budget-label"].textContent = `${count(Number(budget.value), "piece")} per game`;
    this.fields["penalty-label"].textContent = `${short(Number(penalty.value))} stars per piece`;
    const applies = { budget: adviser.value === "budget", penalty: adviser.value === "penalty", you: !person.value };
    for (const label of this.form.querySelectorAll("[data-for]")) {
      label.classList.toggle("hidden", !applies[label.dataset.for]);
    }
  }

  restore() {
    for (const [name, value] of Object.entries(load("settings") ?? {})) {
      const field = this.fields[name];
      if (field && (!field.options || [...field.options].some((option) => option.value === value))) field.value = value;
    }
  }
}

function fill(select, pairs) {
  select.append(...pairs.map(([value, words]) => element("option", { value }, [words])));
}
