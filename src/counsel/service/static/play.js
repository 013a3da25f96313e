// The playground: starts games, passes moves to the service and shows what it answers.

import { ask, download, element, short } from "./common.js";
import { AdviceLine } from "./play-advice.js";
import { Board } from "./play-board.js";
import { fillCard } from "./play-result.js";
import { Clock } from "./play-clock.js";
import { playerName } from "./play-storage.js";
import { Panel } from "./play-panel.js";
import { Settings } from "./play-settings.js";
import { Autoplay } from "./play-autoplay.js";
import { Tutorial } from "./play-tutorial.js";
import { count, endingOf, markOf, sign } from "./play-sentences.js";

const BY_KEY = { ArrowUp: 0, ArrowDown: 2, PageUp: 1, w: 1, W: 1, 1: 0, 2: 1, 3: 2 };
const HINTS = ["↑ or 1", "Shift ↑ or 2", "↓ or 3"]; // The keys of each move in words, for its button.
const NEEDS_KEYS = "select, input:not([type=checkbox]), textarea, dialog[open]";

const find = (name) => document.getElementById(name);

class Playground {
  constructor(world) {
    this.world = world;
    this.round = 0; // Grows with every new game, so that late answers to an old game are dropped.
    this.busy = false;
    this.board = new Board(find("board"), find("overview"), (label) => this.choose(label));
    this.board.heat(find("heat").checked);
    this.advice = new AdviceLine(find, world.moves);
    this.panel = new Panel(find, world.people);
    this.clock = new Clock(find("clock"), () => this.choose(this.game.path.at(-1).action));
    this.autoplay = new Autoplay(find, () => this.beat());
    this.settings = new Settings(find("settings"), find("menu"), world, (name) => this.settingChanged(name));
    this.tutorial = new Tutorial(find("welcome"), () => find("board").focus({ preventScroll: true }));
    this.makeButtons();
    this.bind();
  }

  makeButtons() {
    find("moves").append(...this.world.moves.map((move, index) => {
      const button = element("button", { type: "button", class: "move", "data-move": move.label }, [
        element("span", { class: "move-sign", "aria-hidden": "true" }, [sign(move.rows)]),
        element("span", {}, [move.label]),
        element("kbd", { class: "soft", "aria-hidden": "true" }, [HINTS[index]]),
      ]);
      button.addEventListener("click", () => this.choose(move.label));
      return button;
    }));
  }

  bind() {
    document.addEventListener("keydown", (event) => this.press(event));
    find("heat").addEventListener("change", (event) => this.board.heat(event.target.checked));
    find("new-game").addEventListener("click", () => {
      this.settings.open(false);
      this.start();
    });
    find("show-welcome").addEventListener("click", () => this.tutorial.open());
    find("trouble").querySelector("button").addEventListener("click", () => this.start());
    document.addEventListener("pointerdown", () => { this.byPointer = true; });
    document.addEventListener("keydown", () => { this.byPointer = false; });
  }

  /** Play the move whose key is pressed, unless a control needs the key. */
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(NEEDS_KEYS)) return;
    const index = event.key === "ArrowUp" && event.shiftKey ? 1 : BY_KEY[event.key];
    if (index === undefined) return;
    event.preventDefault();
    if (!event.repeat) this.choose(this.world.moves[index].label);
  }

  async start() {
    this.round += 1;
    const { round } = this;
    const body = this.settings.request();
    this.rest();
    this.prepare(body.map);
    const game = await this.attempt(() => ask("/v1/play/games", { method: "POST", body }));
    if (!game || round !== this.round) return;
    find("stage").setAttribute("aria-busy", "false");
    this.show(game);
  }

  /** Show the map at once; the service may need a moment for its first plan. */
  prepare(name) {
    const map = this.world.maps.find((candidate) => candidate.name === name);
    if (this.board.map !== map) this.board.lay(map, this.world.moves);
    find("stage").setAttribute("aria-busy", "true");
    find("settings-note").textContent = "";
    this.clock.rest(this.settings.seconds);
    this.advice.wait();
  }

  choose(label) {
    if (this.busy || !this.game || this.game.over || this.game.person !== null) return;
    this.board.fly(label);
    this.move(label);
  }

  /** The next beat of a simulated person: a move, or a new game when the last is over. */
  beat() {
    if (this.busy || !this.game || this.game.person === null) return;
    if (document.hidden) this.autoplay.plan(); // Nobody watches, so nobody plays.
    else if (this.game.over) this.start();
    else this.move(null);
  }

  async move(action) {
    const { round, game } = this;
    this.busy = true;
    this.clock.stop();
    const body = { step: game.step, action };
    const next = await this.attempt(() => ask(`/v1/play/games/${encodeURIComponent(game.id)}/moves`, { method: "POST", body }));
    if (round !== this.round) return;
    this.busy = false;
    if (next) return this.show(next);
    this.board.show(game);
    if (game.person !== null) this.autoplay.reset(true);
  }

  show(game) {
    this.game = game;
    showTrouble("");
    this.board.show(game);
    this.advice.show(game);
    this.showState(game);
    this.showSeats(game);
    this.announce(game);
    this.panel.show(game);
    if (game.over) this.end(game);
    else if (game.person !== null) this.autoplay.plan();
    else this.startClock(game);
  }

  showState(game) {
    find("score").textContent = short(game.score);
    find("score-unit").textContent = game.score === 1 ? "star" : "stars";
    find("game-number").textContent = `Game ${game.games + 1}`;
    find("moves-made").textContent = game.over ? `${count(game.path.length, "move")} made` : `Move ${game.step + 1} of ${game.horizon}`;
    const last = game.path.at(-1);
    const mark = find("last-mark");
    if (!last) return mark.replaceChildren();
    const { sign: drawn, words, kind } = markOf(last);
    mark.className = `mark ${kind}`;
    mark.replaceChildren(element("span", { "aria-hidden": "true" }, [drawn]), ` ${words}`);
  }

  /** Show the controls of the player or of the watcher, and mark the advised move. */
  showSeats(game) {
    const watched = game.person !== null;
    find("card").classList.add("hidden");
    find("turn").classList.remove("hidden");
    find("moves").classList.toggle("hidden", watched);
    find("watching").classList.toggle("hidden", !watched);
    for (const button of find("moves").children) {
      const advised = button.dataset.move === game.advice?.advice;
      button.classList.toggle("advised", advised);
      button.setAttribute("aria-label", advised ? `${button.dataset.move}, advised` : button.dataset.move);
    }
  }

  /** Announce the state to screen readers; of a watched game only the end, because its moves come fast. */
  announce(game) {
    if (game.person !== null && !game.over) return;
    const words = game.over
      ? `${game.card.sentence} ${endingOf(game)}`
      : `${count(game.score, "star")}. ${this.advice.spoken()} ${game.rest ? `${game.rest.sentence} ` : ""}${this.board.describe(game)}`;
    find("announcer").textContent = words;
  }

  end(game) {
    this.clock.stop();
    if (game.person !== null && this.autoplay.continues) {
      this.advice.conclude(game.card.sentence);
      this.autoplay.plan(3);
      return;
    }
    fillCard(find("card"), game, this.buttonsAfter(game));
    find("turn").classList.add("hidden");
    find("card").classList.remove("hidden");
    find("card").querySelector("button").focus({ preventScroll: true });
  }

  buttonsAfter(game) {
    const other = this.world.people[0];
    const swap = game.person === null ? [`Watch ${other.title}`, () => this.seat(other.name)] : ["Play yourself", () => this.seat("")];
    return [
      [game.person === null ? "Play again" : "Watch again", () => this.start()],
      swap,
      ["Download my log", () => this.saveLog()],
    ];
  }

  seat(person) {
    this.settings.seat(person);
    this.autoplay.reset();
    this.start();
  }

  saveLog() {
    return this.attempt(() => download(`/v1/play/players/${encodeURIComponent(playerName())}/log?format=spreadsheet`, "counsel-log.csv"));
  }

  /** A new pace applies at once; any other setting starts a new game, unless a game is under way. */
  settingChanged(name) {
    const underWay = this.game && !this.game.over && this.game.step > 0 && this.game.person === null;
    if (name === "pace") {
      this.clock.rest(this.settings.seconds);
      if (this.game) this.startClock(this.game);
    } else if (underWay) find("settings-note").textContent = "This applies to the next game; “New game” starts it now.";
    else this.start();
    if (this.byPointer) find("board").focus({ preventScroll: true });
  }

  /** The clock runs in the timed mode, from the second move on. */
  startClock(game) {
    const { seconds } = this.settings;
    if (seconds && game.step > 0 && !game.over && game.person === null) this.clock.start(seconds);
  }

  rest() {
    Object.assign(this, { game: null, busy: false });
    this.clock.stop();
    this.autoplay.stop();
  }

  /** Send a request; if it fails, show the message and return nothing. */
  async attempt(request) {
    try {
      return await request();
    } catch (trouble) {
      showTrouble(trouble.message);
    }
  }
}

/** Show what went wrong; an empty sentence hides the line. */
function showTrouble(words) {
  find("trouble").firstElementChild.textContent = words;
  find("trouble").classList.toggle("hidden", words === "");
}

async function open() {
  try {
    const playground = new Playground(await ask("/v1/play"));
    playground.tutorial.openOnce();
    await playground.start();
  } catch (trouble) {
    showTrouble(trouble.message);
    find("trouble").querySelector("button").addEventListener("click", () => location.reload());
  }
}

open();
