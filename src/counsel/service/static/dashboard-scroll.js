// Keeps the scroll position: what the reader looks at stays in place while the page changes around it.

const PLACES = "[data-place]";

/** Change the page without moving what is in view. */
export function keepScroll(change) {
  const places = scrollY > 0 ? inView() : [];
  change();
  const [anchor, top] = places.find(([place]) => place.getClientRects().length) ?? [];
  if (!anchor) return;
  const moved = anchor.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}

/** What is in view with its top: first the focused place, then from the top of the window, rows before their sections. */
function inView() {
  const focused = document.activeElement?.closest(PLACES);
  const places = [...(focused ? [focused] : []), ...document.querySelectorAll(PLACES)];
  const visible = places.map((place) => [place, place.getBoundingClientRect()]).filter(([, box]) => box.bottom > 0 && box.top < innerHeight);
  return visible.map(([place, box]) => [place, box.top]).sort(([place, a], [other, b]) => preference(other, b, focused) - preference(place, a, focused));
}

function preference(place, top, focused) {
  if (place === focused) return 2;
  return top >= 0 ? 1 - top / 1e6 : -1 + top / 1e6;
}
