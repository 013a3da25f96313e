// The board. A map is drawn once; a move only shifts the bird, adds to the trail and turns classes on and off.

import { short, svg } from "./common.js";
import { CELL, bird, cloud, ghostBird, paints, pathMark, star, wall } from "./play-sprites.js";
import { markOf } from "./play-sentences.js";

const EDGE = 14;
const WINDOW = 11; // Columns a narrow screen shows at once.
const BEHIND = 3; // Columns of them that lie behind the bird.
const NARROW = matchMedia("(max-width: 40rem)");
const LANDS = { "*": "a star", "#": "a wall", ".": "free", out: "outside the map" };

const centre = ([row, column]) => [(column + .5) * CELL, (row + .5) * CELL];
const place = (at) => `translate(${centre(at).join(" ")})`;

export class Board {
  constructor(root, overview, pick) {
    Object.assign(this, { root, overview, pick });
    NARROW.addEventListener("change", () => this.aim());
  }

  lay(map, moves) {
    const [rows, columns] = [map.rows.length, map.rows[0].length];
    Object.assign(this, { map, moves, rows, columns, at: map.start, game: null });
    this.makeLayers();
    this.camera = svg("g", { class: "camera" }, [this.scene]);
    this.root.replaceChildren(this.camera);
    this.lens = svg("rect", { class: "lens", y: -EDGE + 2, height: this.rows * CELL + 2 * EDGE - 4, rx: 12 });
    this.overview.replaceChildren(svg("use", { href: "#scene" }), this.lens);
    this.put(map.start);
  }

  show(game) {
    if (this.game?.id !== game.id || game.path.length < this.marks.childElementCount) this.clear();
    this.game = game;
    this.at = game.at;
    this.settle(game);
    this.extendTrail(game);
    this.markStars(game);
    this.showHeat(game);
    this.showAdvice(game);
    this.showTargets(game);
    this.scene.classList.toggle("over", game.over);
    this.scene.classList.toggle("watched", game.person !== null);
    for (const step of game.card?.mattered ?? []) this.marks.children[step]?.classList.add("mattered");
    this.root.setAttribute("aria-label", this.describe(game));
    this.aim();
  }

  /** Move the bird at once, before the service has answered. */
  fly(label) {
    const rows = this.rowsOf(label);
    const to = [this.at[0] + rows, this.at[1] + 1];
    for (const layer of [this.ghost, this.hush, this.targets]) layer.classList.add("hidden");
    if (this.sees(...to) === "#") this.bump(rows);
    else this.put(to);
    this.tilt(rows);
  }

  heat(shown) {
    this.heated = shown;
    this.heatLayer?.classList.toggle("hidden", !shown);
  }

  /** Describe what each move leads to, for screen readers. */
  describe(game) {
    const where = `Map of ${this.rows} rows and ${this.columns} columns. Bird in row ${game.at[0] + 1} from the top, column ${game.at[1] + 1}.`;
    if (game.over) return where;
    const ahead = this.moves.map((move) => `${move.label}: ${LANDS[this.sees(game.at[0] + move.rows, game.at[1] + 1)]}`);
    return `${where} ${ahead.join(", ")}.`;
  }

  makeLayers() {
    const [width, height] = [this.columns * CELL, this.rows * CELL];
    this.heatLayer = svg("g", { class: this.heated ? "heat" : "heat hidden" }, this.map.rows[0].split("").map(() => svg("g")));
    this.heatCells = this.map.rows.map((line, row) => [...line].map((_, column) => this.heatCell(row, column)));
    this.stars = new Map(this.cells("*").map((at) => [at.join(), svg("g", { transform: place(at) }, [star()])]));
    const isWall = (row, column) => this.sees(row, column) === "#";
    this.trail = svg("path", { class: "trail" });
    this.marks = svg("g", { class: "marks" });
    this.targets = svg("g", { class: "targets" }, this.moves.map((move) => this.target(move)));
    this.arrow = svg("path", { class: "ghost-arrow" });
    this.ghostPlace = svg("g", {}, [ghostBird()]);
    this.ghost = svg("g", { class: "ghost hidden" }, [this.ghostPlace, this.arrow]);
    this.hush = svg("g", { class: "hush hidden" }, [svg("circle", { class: "hush-bubble", cx: -1, cy: -25, r: 7 }), svg("circle", { class: "hush-dot", cx: -1, cy: -25, r: 3 })]);
    this.bird = svg("g", { class: "bird" }, [bird()]);
    this.scene = svg("g", { id: "scene" }, [
      paints(),
      svg("rect", { class: "sky", x: -EDGE, y: -EDGE, width: width + 2 * EDGE, height: height + 2 * EDGE, rx: 16 }),
      ...this.clouds(),
      svg("path", { class: "lattice", d: this.cells(".").map((at) => `M${centre(at).join(" ")}h0`).join("") }),
      svg("g", { class: "numbers" }, this.numbers()),
      this.heatLayer,
      svg("path", { class: "wall", d: this.cells("#").map((at) => wall(isWall, ...at)).join("") }),
      this.trail, svg("g", {}, [...this.stars.values()]), this.marks, this.targets, this.ghost, this.hush, this.bird,
    ]);
  }

  heatCell(row, column) {
    const [cx, cy] = centre([row, column]);
    const cell = svg("circle", { class: "heat-cell", cx, cy }, [svg("title")]);
    if (this.sees(row, column) !== "#") this.heatLayer.children[column].append(cell);
    return cell;
  }

  /** A few clouds, spread evenly, high and low in turn. */
  clouds() {
    const many = Math.ceil(this.columns / 5);
    return Array.from({ length: many }, (_, index) => {
      const x = ((index + .55) / many) * this.columns * CELL;
      const y = this.rows * CELL * [.14, .56, .3, .8][index % 4];
      return cloud(x, y, [1.5, 1.1, 1.3, .9][index % 4]);
    });
  }

  /** The cells of a kind, row by row. */
  cells(kind) {
    return this.map.rows.flatMap((line, row) => [...line].flatMap((cell, column) => (cell === kind ? [[row, column]] : [])));
  }

  numbers() {
    const shown = Array.from({ length: this.columns }, (_, column) => column).filter((column) => column === 0 || column % 5 === 4);
    return shown.map((column) => svg("text", { x: (column + .5) * CELL, y: this.rows * CELL + EDGE - 4 }, [String(column + 1)]));
  }

  target(move) {
    const node = svg("g", { class: "target" }, [
      svg("rect", { x: -CELL / 2, y: -CELL / 2, width: CELL, height: CELL }),
      svg("circle", { r: 16.5 }),
      svg("title", {}, [move.label]),
    ]);
    node.addEventListener("click", () => this.pick(move.label));
    return node;
  }

  sees(row, column) {
    return this.map.rows[row]?.[column] ?? "out";
  }

  rowsOf(label) {
    return this.moves.find((move) => move.label === label).rows;
  }

  clear() {
    this.marks.replaceChildren();
    this.trail.setAttribute("d", "");
    for (const node of this.stars.values()) node.removeAttribute("class");
    this.bird.classList.remove("hurt");
    this.tilt(0);
  }

  put([row, column]) {
    const [x, y] = centre([row, column]);
    this.bird.style.transform = `translate(${x}px, ${y}px)`;
    this.at = [row, column];
    this.aim();
  }

  /** Stop short of a wall. */
  bump(rows) {
    const [x, y] = centre(this.at);
    this.bird.style.transform = `translate(${x + CELL * .34}px, ${y + rows * CELL * .4}px)`;
  }

  tilt(rows) {
    const sky = Math.sign(rows) * (Math.abs(rows) > 1 ? 26 : 15);
    this.bird.firstChild.style.transform = `rotate(${sky}deg)`;
    this.bird.classList.toggle("flap", rows < 0);
  }

  settle(game) {
    const last = game.path.at(-1);
    this.bird.classList.toggle("hurt", game.ending === "wall");
    if (last) this.tilt(this.rowsOf(last.action));
    if (game.ending === "wall") this.bump(this.rowsOf(last.action));
    else if (game.ending === "edge") this.put([game.at[0] + this.rowsOf(last.action), game.at[1] + 1]);
    else this.put(game.at);
    this.at = game.at;
  }

  extendTrail(game) {
    this.marks.append(...game.path.slice(this.marks.childElementCount).map((move) =>
      svg("g", { class: "path-step", transform: place(move.at) }, [pathMark(markOf(move).kind)])));
    const stops = [...game.path.map((move) => move.at), game.at].map(centre);
    const bends = stops.slice(1).map(([x, y], index) => {
      const [fromX, fromY] = stops[index];
      return `C${fromX + CELL / 2} ${fromY} ${x - CELL / 2} ${y} ${x} ${y}`;
    });
    this.trail.setAttribute("d", stops.length ? `M${stops[0].join(" ")}${bends.join("")}` : "");
  }

  markStars(game) {
    const visited = new Set([...game.path.map((move) => move.at), game.at].map((at) => at.join()));
    for (const [cell, node] of this.stars) {
      const passed = Number(cell.split(",")[1]) < game.at[1];
      node.setAttribute("class", visited.has(cell) ? "star-place taken" : passed ? "star-place passed" : "star-place");
    }
  }

  /** Larger and stronger where advice is worth more, so that colour is not the only cue. */
  showHeat({ critical, over, at }) {
    const most = Math.max(...critical.flat(), 1e-9);
    critical.forEach((line, row) => line.forEach((worth, column) => {
      const cell = this.heatCells[row][column];
      const share = Math.round((100 * worth) / most) / 100;
      if (cell.worth === share) return;
      cell.worth = share;
      cell.setAttribute("r", share > .04 ? CELL * (.12 + .48 * Math.sqrt(share)) : 0);
      cell.setAttribute("opacity", .06 + .5 * share);
      cell.firstChild.textContent = `The best advice here is worth ${short(worth)} stars`;
    }));
    [...this.heatLayer.children].forEach((line, column) => line.classList.toggle("passed", !over && column < at[1]));
  }

  showAdvice(game) {
    const advice = game.advice?.advice ?? null;
    this.ghost.classList.toggle("hidden", advice === null);
    this.hush.classList.toggle("hidden", game.over || advice !== null);
    this.hush.setAttribute("transform", place(game.at));
    if (advice === null) return;
    const rows = this.rowsOf(advice);
    this.ghostPlace.setAttribute("transform", place([game.at[0] + rows, game.at[1] + 1]));
    this.arrow.setAttribute("transform", `${place(game.at)} rotate(${(Math.atan2(rows, 1) * 180) / Math.PI})`);
    const reach = Math.hypot(rows * CELL, CELL) - 17;
    this.arrow.setAttribute("d", `M17 0H${reach - 2}M${reach - 8} -6.5L${reach} 0L${reach - 8} 6.5`);
  }

  showTargets(game) {
    this.targets.classList.toggle("hidden", game.over || game.person !== null);
    this.moves.forEach((move, index) => {
      const to = [game.at[0] + move.rows, game.at[1] + 1];
      this.targets.children[index].setAttribute("transform", place(to));
      this.targets.children[index].classList.toggle("hidden", this.sees(...to) === "out");
    });
  }

  /** Show all columns; on a narrow screen, during a game, those around the bird, with the whole map below. */
  aim() {
    if (!this.map) return;
    const shown = NARROW.matches && !this.game?.over ? Math.min(WINDOW, this.columns) : this.columns;
    const first = Math.max(0, Math.min(this.at[1] - BEHIND, this.columns - shown));
    const [width, height] = [shown * CELL + 2 * EDGE, this.rows * CELL + 2 * EDGE];
    this.root.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${width} ${height}`);
    this.camera.style.transform = `translate(${-first * CELL}px, 0)`;
    this.overview.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${this.columns * CELL + 2 * EDGE} ${height}`);
    this.overview.parentElement.classList.toggle("whole", shown === this.columns);
    this.lens.setAttribute("width", width - 4);
    this.lens.style.transform = `translate(${first * CELL - EDGE + 2}px, 0)`;
  }
}
