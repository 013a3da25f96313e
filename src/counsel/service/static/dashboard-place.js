// Keeps what the reader looks at where it is while the page changes around it.

const PLACES = "[data-place]";

/** Change the page without moving what is in view. */
export function keepPlace(change) {
  const seen = scrollY > 0 ? inView() : [];
  change();
  const [anchor, top] = seen.find(([one]) => one.getClientRects().length) ?? [];
  if (!anchor) return;
  const moved = anchor.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}

/** What is in view with its place: first what has the focus, then from the top of the window, rows before their sections. */
function inView() {
  const focused = document.activeElement?.closest(PLACES);
  const places = [...(focused ? [focused] : []), ...document.querySelectorAll(PLACES)];
  const found = places.map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.bottom > 0 && box.top < innerHeight);
  return found.map(([one, box]) => [one, box.top]).sort(([one, a], [other, b]) => preference(other, b, focused) - preference(one, a, focused));
}

function preference(one, top, focused) {
  if (one === focused) return 2;
  return top >= 0 ? 1 - top / 1e6 : -1 + top / 1e6;
}
