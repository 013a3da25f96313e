// What the browser stores between visits. Without storage the page works and forgets.

/** Return the value stored under a name, or null. */
export function load(name) {
  try {
    return JSON.parse(localStorage.getItem(`counsel-play-${name}`));
  } catch {
    return null;
  }
}

export function store(name, value) {
  try {
    localStorage.setItem(`counsel-play-${name}`, JSON.stringify(value));
  } catch {
    // Storage is full or refused.
  }
}

/** Return the name that this browser made up for its player, the same on every visit. */
export function playerName() {
  const known = load("player");
  if (known) return known;
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const name = `player-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  store("player", name);
  return name;
}
