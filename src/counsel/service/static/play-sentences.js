// The words of the playground: signs of the moves, counts, how a game ended.

const SIGNS = { "-1": "↑", "-2": "⇈", 1: "↓" };

/** Return the arrow of a move by the rows it goes down. */
export const sign = (rows) => SIGNS[rows] ?? (rows < 0 ? "↑" : "↓");

/** "1 star", "2 stars", "no pieces". */
export function count(number, singular, plural = `${singular}s`) {
  if (number === 0) return `no ${plural}`;
  return `${number.toLocaleString("en")} ${number === 1 ? singular : plural}`;
}

/** "three-phases" as a title: "Three phases". */
export function title(name) {
  const words = name.replaceAll("-", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Format a list: "3, 5 and 9". */
export const listed = (things) => new Intl.ListFormat("en-GB", { type: "conjunction" }).format(things.map(String));

/** How the flight ended, as one sentence. */
export function endingOf(game) {
  const column = game.at[1] + 1;
  if (game.ending === "wall") return `The flight ended at a wall in column ${column + 1}.`;
  if (game.ending === "edge") return `The bird left the map after column ${column}.`;
  return "The bird flew through to the end.";
}

/** Whether the advice of a past move was taken: sign, words and the name of its style. */
export function markOf(move) {
  if (move.followed === null) return { sign: "●", words: "Last: silent", kind: "silent" };
  if (move.followed) return { sign: "▲", words: "Last: advice taken", kind: "taken" };
  return { sign: "△", words: "Last: advice not taken", kind: "untaken" };
}
