// The small charts of the panel: the frontier, and the history of the estimates of a simulated person.

import { element, scale, short, svg, ticks } from "./common.js";
import { count } from "./play-sentences.js";

const WIDTH = 300;
const FRONTIER_BOX = [34, 24, WIDTH - 8, 150];
const HISTORY_BOX = [34, 24, WIDTH - 62, 120];
const KEPT = 400;

/** The frontier: expected stars against expected pieces of advice, with the player on it. */
export class Frontier {
  constructor(root, about) {
    Object.assign(this, { root, about });
  }

  show({ frontier }, who) {
    const { pieces, value, you } = frontier;
    const drawn = JSON.stringify([frontier, who]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.about.textContent = describe(frontier, who);
    const [left, top, right, bottom] = FRONTIER_BOX;
    const mostPieces = Math.max(...pieces, you?.pieces ?? 0, 1);
    const mostValue = 1.1 * Math.max(...value, you?.value ?? 0, 1);
    const x = scale([0, mostPieces], [left, right - 6]);
    const y = scale([0, mostValue], [bottom, top]);
    const curve = pieces.map((piece, index) => [x(piece), y(value[index])]);
    this.root.replaceChildren(chart(FRONTIER_BOX, this.about.textContent, [
      ...axes({ x, y, xTicks: upTo(mostPieces, 4), yTicks: upTo(mostValue, 3), box: FRONTIER_BOX, xName: "pieces of advice per game", yName: "stars" }),
      svg("path", { class: "frontier-fill", d: `${line([[x(0), bottom], ...curve, [curve.at(-1)[0], bottom]])}Z` }),
      svg("path", { class: "frontier-line", d: line(curve) }),
      ...(you ? player(x(you.pieces), y(you.value), who) : []),
    ]));
  }
}

function player(x, y, who) {
  const onRight = x > WIDTH * .6;
  const low = y > FRONTIER_BOX[3] - 20;
  return [
    svg("path", { class: "frontier-you", d: `M${x} ${y - 7}l7 7l-7 7l-7 -7Z` }),
    svg("text", { class: `frontier-name${onRight ? " end" : ""}`, x: x + (onRight ? -11 : 11), y: y + (low ? -8 : 16) }, [who]),
  ];
}

function describe({ value, you }, who) {
  const best = `With advice, about ${short(value.at(-1))} stars per game are possible; alone, about ${short(value[0])}.`;
  if (!you) return `${best} ◆ marks ${who === "You" ? "you" : who} after the first game.`;
  return `${best} ◆ ${who}: ${short(you.value)} stars with ${short(you.pieces)} pieces, the average of ${count(you.games, "game")}.`;
}

/** The history of the estimates while a simulated person plays, with the true values. */
export class History {
  constructor(root) {
    Object.assign(this, { root, subject: null });
  }

  show(game) {
    const watched = game.listening.some(({ truth }) => truth !== null);
    this.root.classList.toggle("hidden", !watched);
    if (!watched) return;
    this.remember(game);
    this.draw(game);
  }

  remember(game) {
    const subject = `${game.person} ${game.map}`;
    if (this.subject !== subject) Object.assign(this, { subject, points: [] });
    const pieces = game.listening.reduce((sum, lift) => sum + lift.pieces, 0);
    if (this.points.at(-1)?.pieces === pieces) return;
    this.points.push({ pieces, estimates: game.listening.map(({ estimate }) => estimate) });
    if (this.points.length > KEPT) this.points = this.points.filter((_, index) => index % 2 === 1);
  }

  draw(game) {
    const [left, top, right, bottom] = HISTORY_BOX;
    const [first, last] = [this.points[0].pieces, Math.max(this.points.at(-1).pieces, this.points[0].pieces + 1)];
    const x = scale([first, last], [left, right]);
    const y = scale([0, 1], [bottom, top]);
    const xTicks = upTo(last, (3 * last) / (last - first)).filter((tick) => tick >= first);
    const heights = apart(game.listening.map(({ estimate }) => y(estimate)), 13, bottom);
    const picture = chart(HISTORY_BOX, "Estimated lifts against pieces of advice, and the true values", [
      ...axes({ x, y, xTicks, yTicks: [0, .5, 1], box: HISTORY_BOX, xName: "pieces of advice heard", yName: "estimate; dashed: the truth" }),
      ...game.listening.flatMap(({ advice, truth }, index) => [
        svg("path", { class: "history-truth", d: `M${left} ${y(truth)}H${right}` }),
        svg("path", { class: `history-line nth-${index}`, d: line(this.points.map((point) => [x(point.pieces), y(point.estimates[index])])) }),
        svg("text", { class: "axis-text", x: right + 6, y: heights[index] + 4 }, [advice]),
      ]),
    ]);
    this.root.replaceChildren(element("figcaption", { class: "unseen" }, ["How the estimates move towards the truth"]), picture);
  }
}

/** Move heights apart so that labels do not overlap, none below the floor. */
function apart(heights, gap, floor) {
  const placed = [...heights];
  let above = -Infinity;
  for (const index of [...heights.keys()].sort((a, b) => heights[a] - heights[b])) {
    placed[index] = Math.max(heights[index], above + gap);
    above = placed[index];
  }
  return placed.map((height) => height - Math.max(0, above - floor));
}

/** Return at most `many` round steps from zero up to `most`. */
const upTo = (most, many) => ticks(0, most, many).filter((tick) => tick <= most * (1 + 1e-9));

const chart = ([, , , bottom], label, nodes) =>
  svg("svg", { viewBox: `0 0 ${WIDTH} ${bottom + 36}`, role: "img", "aria-label": label }, nodes);

/** Axes with ticks: x below, y to the left with light lines across. */
function axes({ x, y, xTicks, yTicks, box: [left, top, right, bottom], xName, yName }) {
  return [
    ...yTicks.map((value) => svg("path", { class: "axis-line", d: `M${left} ${y(value)}H${right}` })),
    ...yTicks.map((value) => svg("text", { class: "axis-text end", x: left - 6, y: y(value) + 4 }, [short(value)])),
    ...xTicks.map((value) => svg("text", { class: "axis-text middle", x: x(value), y: bottom + 15 }, [short(value)])),
    svg("text", { class: "axis-text end", x: right, y: bottom + 30 }, [xName]),
    svg("text", { class: "axis-text", x: 0, y: top - 9 }, [yName]),
  ];
}

const line = (points) => points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` : "";
