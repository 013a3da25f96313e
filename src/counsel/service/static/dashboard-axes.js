// What axes say: round ticks, and times as people read them.

const MINUTE = 60, DAY = 86400;

/** Round numbers that cover a range with about `count` steps; the outer ones may lie outside of it. */
export function ticks(from, to, count) {
  const rough = (to - from || Math.abs(to) || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= rough * 0.999);
  const first = Math.floor(from / step + 1e-9);
  const last = Math.max(Math.ceil(to / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** The beginnings of bins as people read them, with as much detail as all of them span; a repeated one is left out. */
export function starts(bins) {
  const span = bins.at(-1).to - bins[0].from;
  const told = bins.map(({ from }) => clock(from, span));
  return told.map((text, i) => (text === told[i - 1] ? "" : text));
}

/** A time that stands alone: the day and the minute. */
export function moment(seconds) {
  return written(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** A time within a day, to the second. */
export function second(seconds) {
  return written(seconds, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function clock(seconds, span) {
  if (span < 10 * MINUTE) return second(seconds);
  return written(seconds, span < DAY ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

function written(seconds, parts) {
  return new Date(seconds * 1000).toLocaleString("en-GB", parts);
}
