// The card at the end of a game: the score, the score alone, where advice mattered, what the machine learnt.

import { element, percent, scale, short, svg } from "./common.js";
import { count, endingOf, together } from "./play-words.js";

const WIDTH = 300;

/** Fill the card; `deeds` are its buttons as [words, what to do], the first one being the main one. */
export function fillCard(root, game, deeds) {
  const { card } = game;
  root.replaceChildren(
    element("h2", {}, [card.sentence]),
    element("p", { class: "soft" }, [`${endingOf(game)} On the path: ▲ advice taken, △ not taken, ● silence.`]),
    element("div", { class: "card-columns" }, [
      compare(card),
      section("Where advice mattered", [element("p", {}, [matteredWords(card, game)])]),
      section("What the machine learnt", learntRows(card)),
    ]),
    element("p", { class: "deeds" }, deeds.map(([words, act], index) => {
      const button = element("button", index === 0 ? { type: "button", class: "main" } : { type: "button" }, [words]);
      button.addEventListener("click", act);
      return button;
    })),
  );
}

function section(heading, children) {
  return element("section", {}, [element("h3", {}, [heading]), ...children]);
}

/** The score as a star on a line, and the estimate alone as a dot with its interval. */
function compare({ score, alone }) {
  const most = Math.max(score, alone.high ?? alone.estimate, 1);
  const x = scale([0, most], [14, WIDTH - 14]);
  const [low, high] = [alone.low ?? alone.estimate, alone.high ?? alone.estimate];
  const interval = alone.low === null ? "" : ` (${short(low)} to ${short(high)})`;
  const told = `Alone, estimated: ${short(alone.estimate)}${interval}.`;
  return element("figure", { class: "compare" }, [
    svg("svg", { viewBox: `0 0 ${WIDTH} 62`, role: "img", "aria-label": `Score ${short(score)}. ${told}` }, [
      svg("path", { class: "axis-line", d: `M${x(0)} 31H${x(most)}` }),
      svg("rect", { class: "alone-band", x: x(low), y: 26, width: Math.max(2, x(high) - x(low)), height: 10, rx: 5 }),
      svg("circle", { class: "alone-dot", cx: x(alone.estimate), cy: 31, r: 6 }),
      svg("text", { class: `compare-text ${side(x(alone.estimate))}`, x: x(alone.estimate), y: 57 }, [`alone about ${short(alone.estimate)}`]),
      svg("text", { class: "compare-star", x: x(score), y: 38 }, ["★"]),
      svg("text", { class: `compare-text strong ${side(x(score))}`, x: x(score), y: 15 }, [`this game ${short(score)}`]),
    ]),
    element("figcaption", { class: "soft small" }, [told]),
  ]);
}

/** Which way a label must run to stay inside the picture. */
function side(x) {
  if (x < 80) return "start";
  return x > WIDTH - 80 ? "end" : "middle";
}

function matteredWords(card, game) {
  if (card.pieces === 0) return "The machine said nothing in this game.";
  const taken = game.path.filter((move) => move.followed).length;
  const spent = `${count(card.pieces, "piece")} of advice, ${taken} taken.`;
  if (card.mattered.length === 0) return spent;
  const steps = together([...card.mattered].sort((a, b) => a - b).map((step) => step + 1));
  return `${spent} Worth most at ${card.mattered.length === 1 ? "move" : "moves"} ${steps}, ringed on the path.`;
}

function learntRows(card) {
  const changed = card.learnt.filter((one) => Math.abs(one.after - one.before) >= .005);
  if (changed.length === 0) return [element("p", {}, ["Nothing new about how much advice moves the player."])];
  return [element("ul", { class: "learnt" }, changed.map((one) => element("li", {}, [
    element("span", {}, [one.advice]),
    element("span", { class: "soft" }, [percent(one.before)]),
    element("span", { "aria-label": "to", role: "img" }, ["→"]),
    element("strong", {}, [percent(one.after)]),
  ])))];
}
