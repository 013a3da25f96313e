// The history of the estimates while a simulated person plays, with the true values.

import { element, scale, svg } from "./common.js";
import { axes, line, ticks } from "./play-axes.js";

const WIDTH = 300;
const BOX = [34, 24, WIDTH - 62, 120];
const KEPT = 400;

export class History {
  constructor(root) {
    this.root = root;
    this.subject = null;
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
    const [left, top, right, bottom] = BOX;
    const [first, last] = [this.points[0].pieces, Math.max(this.points.at(-1).pieces, this.points[0].pieces + 1)];
    const x = scale([first, last], [left, right]);
    const y = scale([0, 1], [bottom, top]);
    const xTicks = ticks(last, (3 * last) / (last - first)).filter((tick) => tick >= first);
    const heights = apart(game.listening.map(({ estimate }) => y(estimate)), 13, bottom);
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${bottom + 36}`, role: "img", "aria-label": "Estimated lifts against pieces of advice, and the true values" }, [
      ...axes({ x, y, xTicks, yTicks: [0, .5, 1], box: BOX, xName: "pieces of advice heard", yName: "estimate; dashed: the truth" }),
      ...game.listening.flatMap(({ advice, truth }, index) => [
        svg("path", { class: "history-truth", d: `M${left} ${y(truth)}H${right}` }),
        svg("path", { class: `history-line nth-${index}`, d: line(this.points.map((point) => [x(point.pieces), y(point.estimates[index])])) }),
        svg("text", { class: "axis-text", x: right + 6, y: heights[index] + 4 }, [advice]),
      ]),
    ]);
    this.root.replaceChildren(element("figcaption", { class: "unseen" }, ["How the estimates move towards the truth"]), chart);
  }
}

/** Move heights apart so that labels do not overlap, none below the floor. */
function apart(heights, gap, floor) {
  const order = heights.map((height, index) => [height, index]).sort(([a], [b]) => a - b);
  const placed = [...heights];
  let above = -Infinity;
  for (const [height, index] of order) {
    placed[index] = Math.max(height, above + gap);
    above = placed[index];
  }
  const over = Math.max(0, above - floor);
  return placed.map((height) => height - over);
}
