// What the browser keeps between visits. A browser that refuses storage only forgets.

/** What was kept under this name, or null. */
export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(`counsel-play-${name}`));
  } catch {
    return null;
  }
}

/** Keep a value for the next visit. */
export function keep(name, value) {
  try {
    localStorage.setItem(`counsel-play-${name}`, JSON.stringify(value));
  } catch {
    // Storage is full or refused; the page works without it.
  }
}

/** The name this browser made up for its player, the same on every visit. */
export function playerName() {
  const known = recall("player");
  if (known) return known;
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const name = `player-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  keep("player", name);
  return name;
}
