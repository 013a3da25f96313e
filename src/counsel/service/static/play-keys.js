// The keyboard: which keys make which move.

const BY_KEY = { ArrowUp: 0, ArrowDown: 2, PageUp: 1, w: 1, W: 1, 1: 0, 2: 1, 3: 2 };
/** The keys of each move in words, for its button. */
export const HINTS = ["↑ or 1", "Shift ↑ or 2", "↓ or 3"];

const BUSY = "select, input:not([type=checkbox]), textarea, dialog[open]";

/** Call `play` with the index of the move whose key is pressed, unless a control needs the key. */
export function listen(play) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(BUSY)) return;
    const index = event.key === "ArrowUp" && event.shiftKey ? 1 : BY_KEY[event.key];
    if (index === undefined) return;
    event.preventDefault();
    if (!event.repeat) play(index);
  });
}
