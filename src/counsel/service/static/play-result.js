// The result of a game: the score, the score without advice, where advice mattered, what the machine learnt.

import { element, percent, scale, short, svg } from "./common.js";
import { count, endingOf, listed } from "./play-sentences.js";

const WIDTH = 300;

/** Fill the card; `buttons` are pairs [words, action], the main button first. */
export function fillCard(root, game, buttons) {
  const { card } = game;
  root.replaceChildren(
    element("h2", {}, [card.sentence]),
    element("p", { class: "soft" }, [`${endingOf(game)} On the path: ▲ advice taken, △ not taken, ● silence.`]),
    element("div", { class: "card-columns" }, [
      compare(card),
      section("Where advice mattered", [element("p", {}, [matteredWords(card, game)])]),
      section("What the machine learnt", learntRows(card)),
    ]),
    element("p", { class: "buttons" }, buttons.map(([words, act], index) => {
      const button = element("button", index === 0 ? { type: "button", class: "main" } : { type: "button" }, [words]);
      button.addEventListener("click", act);
      return button;
    })),
  );
}

const section = (heading, children) => element("section", {}, [element("h3", {}, [heading]), ...children]);

/** The score as a star on a line, and the estimate without advice as a dot with its interval. */
function compare({ score, alone }) {
  const most = Math.max(score, alone.high ?? alone.estimate, 1);
  const x = scale([0, most], [14, WIDTH - 14]);
  const [low, high] = [alone.low ?? alone.estimate, alone.high ?? alone.estimate];
  const interval = alone.low === null ? "" : ` (${short(low)} to ${short(high)})`;
  const caption = `Alone, estimated: ${short(alone.estimate)}${interval}.`;
  return element("figure", { class: "compare" }, [
    svg("svg", { viewBox: `0 0 ${WIDTH} 62`, role: "img", "aria-label": `Score ${short(score)}. ${caption}` }, [
      svg("path", { class: "axis-line", d: `M${x(0)} 31H${x(most)}` }),
      svg("rect", { class: "alone-band", x: x(low), y: 26, width: Math.max(2, x(high) - x(low)), height: 10, rx: 5 }),
      svg("circle", { class: "alone-dot", cx: x(alone.estimate), cy: 31, r: 6 }),
      svg("text", { class: `compare-text ${side(x(alone.estimate))}`, x: x(alone.estimate), y: 57 }, [`alone about ${short(alone.estimate)}`]),
      svg("text", { class: "compare-star", x: x(score), y: 38 }, ["★"]),
      svg("text", { class: `compare-text strong ${side(x(score))}`, x: x(score), y: 15 }, [`this game ${short(score)}`]),
    ]),
    element("figcaption", { class: "soft small" }, [caption]),
  ]);
}

/** Return the anchor with which a label stays inside the picture. */
function side(x) {
  if (x < 80) return "start";
  return x > WIDTH - 80 ? "end" : "middle";
}

function matteredWords(card, game) {
  if (card.pieces === 0) return "The machine said nothing in this game.";
  const taken = game.path.filter((move) => move.followed).length;
  const spent = `${count(card.pieces, "piece")} of advice, ${taken} taken.`;
  if (card.mattered.length === 0) return spent;
  const steps = listed([...card.mattered].sort((a, b) => a - b).map((step) => step + 1));
  return `${spent} Worth most at ${card.mattered.length === 1 ? "move" : "moves"} ${steps}, ringed on the path.`;
}

function learntRows(card) {
  const changed = card.learnt.filter(({ before, after }) => Math.abs(after - before) >= .005);
  if (changed.length === 0) return [element("p", {}, ["Nothing new about how much the player listens."])];
  return [element("ul", { class: "learnt" }, changed.map(({ advice, before, after }) => element("li", {}, [
    element("span", {}, [advice]),
    element("span", { class: "soft" }, [percent(before)]),
    element("span", { "aria-label": "to", role: "img" }, ["→"]),
    element("strong", {}, [percent(after)]),
  ])))];
}
