// How the page says things: signs of the moves, counts, ends of a game.

const SIGNS = { "-1": "↑", "-2": "⇈", 1: "↓" };

/** The arrow of a move that goes this many rows down. */
export function sign(rows) {
  return SIGNS[rows] ?? (rows < 0 ? "↑" : "↓");
}

/** "1 star", "2 stars", "no pieces". */
export function count(number, one, many = `${one}s`) {
  if (number === 0) return `no ${many}`;
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** "three-phases" as a title: "Three phases". */
export function title(name) {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A list as people say it: "3, 5 and 9". */
export function together(things) {
  return new Intl.ListFormat("en-GB", { type: "conjunction" }).format(things.map(String));
}

/** How the flight ended, as one sentence. */
export function endingOf(game) {
  const column = game.at[1] + 1;
  if (game.ending === "wall") return `The flight ended at a wall in column ${column + 1}.`;
  if (game.ending === "edge") return `The bird left the map after column ${column}.`;
  return "The bird flew through to the end.";
}

/** What became of the advice of a move already made: sign, words and a name for its style. */
export function markOf(move) {
  if (move.followed === null) return { sign: "●", words: "Last: silent", kind: "silent" };
  if (move.followed) return { sign: "▲", words: "Last: advice taken", kind: "taken" };
  return { sign: "△", words: "Last: advice not taken", kind: "untaken" };
}
