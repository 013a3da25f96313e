// Times as text: on axes and in tables.

const MINUTE = 60, DAY = 86400;

/** Return the start of each bin as text, as detailed as their whole span needs; repeated texts are empty. */
export function starts(bins) {
  const span = bins.at(-1).to - bins[0].from;
  const texts = bins.map(({ from }) => clock(from, span));
  return texts.map((text, i) => (text === texts[i - 1] ? "" : text));
}

/** Format a time: with its day and minute, or within a day to the second. */
export const moment = (seconds) => format(seconds, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
export const second = (seconds) => format(seconds, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function clock(seconds, span) {
  if (span < 10 * MINUTE) return second(seconds);
  return format(seconds, span < DAY ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" });
}

const format = (seconds, parts) => new Date(seconds * 1000).toLocaleString("en-GB", parts);
