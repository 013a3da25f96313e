// The frontier: expected stars against expected pieces of advice, with the player on it.

import { scale, short, svg } from "./common.js";
import { axes, line, ticks } from "./play-axes.js";
import { count } from "./play-sentences.js";

const WIDTH = 300;
const BOX = [34, 24, WIDTH - 8, 150];

export class Frontier {
  constructor(root, about) {
    this.root = root;
    this.about = about;
  }

  show(game, who) {
    const { pieces, value, you } = game.frontier;
    const drawn = JSON.stringify([game.frontier, who]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.about.textContent = this.describe(game.frontier, who);
    const [left, top, right, bottom] = BOX;
    const mostPieces = Math.max(...pieces, you?.pieces ?? 0, 1);
    const mostValue = 1.1 * Math.max(...value, you?.value ?? 0, 1);
    const x = scale([0, mostPieces], [left, right - 6]);
    const y = scale([0, mostValue], [bottom, top]);
    const curve = pieces.map((piece, index) => [x(piece), y(value[index])]);
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${bottom + 36}`, role: "img", "aria-label": this.about.textContent }, [
      ...axes({ x, y, xTicks: ticks(mostPieces), yTicks: ticks(mostValue, 3), box: BOX, xName: "pieces of advice per game", yName: "stars" }),
      svg("path", { class: "frontier-fill", d: `${line([[x(0), bottom], ...curve, [curve.at(-1)[0], bottom]])}Z` }),
      svg("path", { class: "frontier-line", d: line(curve) }),
      ...(you ? this.player(x(you.pieces), y(you.value), who) : []),
    ]);
    this.root.replaceChildren(chart);
  }

  player(x, y, who) {
    const onRight = x > WIDTH * .6;
    const low = y > BOX[3] - 20;
    return [
      svg("path", { class: "frontier-you", d: `M${x} ${y - 7}l7 7l-7 7l-7 -7Z` }),
      svg("text", { class: `frontier-name${onRight ? " end" : ""}`, x: x + (onRight ? -11 : 11), y: y + (low ? -8 : 16) }, [who]),
    ];
  }

  describe({ value, you }, who) {
    const best = `With advice, about ${short(value.at(-1))} stars per game are possible; alone, about ${short(value[0])}.`;
    if (!you) return `${best} ◆ marks ${inText(who)} after the first game.`;
    return `${best} ◆ ${who}: ${short(you.value)} stars with ${short(you.pieces)} pieces, the average of ${count(you.games, "game")}.`;
  }
}

function inText(who) {
  return who === "You" ? "you" : who;
}
