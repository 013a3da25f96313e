// What the browser stores between visits, and once more for this tab: a browser may refuse to store
// anything for long, or lose what was stored a moment ago. Without storage the page works and forgets.

const PLACES = ["localStorage", "sessionStorage"];

/** Return the value stored under a name, or null. */
export function load(name) {
  for (const place of PLACES) {
    try {
      const value = JSON.parse(window[place].getItem(`counsel-play-${name}`));
      if (value !== null) return value;
    } catch {
      // Storage is refused, or the text is not ours.
    }
  }
  return null;
}

export function store(name, value) {
  for (const place of PLACES) {
    try {
      window[place].setItem(`counsel-play-${name}`, JSON.stringify(value));
    } catch {
      // Storage is full or refused.
    }
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
