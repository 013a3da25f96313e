// The labels of axes: round ticks, and times.

const MINUTE = 60, DAY = 86400;

/** Return round numbers that cover a range with about `count` steps; the first and last may lie outside of it. */
export function ticks(from, to, count) {
  const rough = (to - from || Math.abs(to) || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.floor(from / step + 1e-9);
  const last = Math.max(Math.ceil(to / step - 1e-9), first + 1);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Return the start of each bin as text, as detailed as their whole span needs; repeated texts are empty. */
export function starts(bins) {
  const span = bins.at(-1).to - bins[0].from;
  const texts = bins.map(({ from }) => clock(from, span));
  return texts.map((text, i) => (text === texts[i - 1] ? "" : text));
}

/** Format a time with its day and minute. */
export function moment(seconds) {
  return format(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

/** Format a time within a day, to the second. */
export function second(seconds) {
  return format(seconds, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function clock(seconds, span) {
  if (span < 10 * MINUTE) return second(seconds);
  return format(seconds, span < DAY ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

function format(seconds, parts) {
  return new Date(seconds * 1000).toLocaleString("en-GB", parts);
}
