// The types of charts: each takes data and a width, and returns a height, SVG nodes, and marks with exact values.

import { scale, svg, ticks } from "./common.js";
import { starts } from "./dashboard-times.js";

const EDGE = { left: 44, right: 40, top: 16, bottom: 26 };
const HEIGHT = 210;
const LETTER = 7;

const round = (place) => Math.round(place * 10) / 10;

const text = (content, x, y, { anchor = "start", kind = "" } = {}) =>
  svg("text", { x: round(x), y: round(y), "text-anchor": anchor, class: kind }, [content]);

const line = (x1, y1, x2, y2, kind) => svg("line", { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), class: kind });

const path = (points, kind) =>
  svg("path", { d: points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join(""), class: kind });

const column = (left, right, top, foot) =>
  svg("rect", { x: round(left), y: round(top), width: round(right - left), height: round(foot - top), class: "column" });

/** Shorten a label to a width. */
function cut(label, width) {
  const most = Math.max(Math.floor(width / LETTER), 3);
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/** Horizontal lines with their values at the left. */
function levels(values, y, width, format) {
  return values.flatMap((value) => [
    line(EDGE.left, y(value), width - EDGE.right, y(value), value === 0 ? "axis" : "grid"),
    text(format(value), EDGE.left - 6, y(value) + 4, { anchor: "end", kind: "scale" }),
  ]);
}

/** Scales and axes over time; bins stand side by side and are equally wide however long they lasted. */
function overTime(bins, width, top, format) {
  const x = scale([0, bins.length], [EDGE.left, width - EDGE.right]);
  const y = scale([0, top.at(-1)], [HEIGHT - EDGE.bottom, EDGE.top]);
  const nodes = levels(top, y, width, format);
  let free = -Infinity;
  starts(bins).forEach((label, i) => {
    if (!label || x(i) < free) return;
    nodes.push(line(x(i), y(0), x(i), y(0) + 4, "axis"), text(label, x(i), HEIGHT - 8, { kind: "scale" }));
    free = x(i) + (label.length + 2) * LETTER;
  });
  return { x, y, nodes };
}

/** A share over time: a line with a band, interrupted where there is no data. */
export function trend({ bins, format }, width) {
  const { x, y, nodes } = overTime(bins, width, [0, 0.25, 0.5, 0.75, 1], format);
  const places = bins.map((bin, i) => ({ ...bin, x: x(i + 0.5) }));
  for (const run of runs(places)) {
    const band = [...run.map((p) => [p.x, y(p.high)]), ...run.toReversed().map((p) => [p.x, y(p.low)])];
    nodes.push(path(band, "band"), path(run.map((p) => [p.x, y(p.share)]), "curve"));
    if (run.length === 1) nodes.push(line(run[0].x, y(run[0].low), run[0].x, y(run[0].high), "whisker"));
  }
  const known = places.filter((p) => p.share !== null);
  nodes.push(...known.map((p) => svg("circle", { cx: round(p.x), cy: round(y(p.share)), r: 2.5, class: "dot" })));
  const last = known.at(-1);
  if (last) nodes.push(text(format(last.share), last.x + 7, y(last.share) + 4, { kind: "direct" }));
  const marks = known.map((p) => ({ key: p.key, x: p.x, y: y(p.share), along: 0.2, head: p.head, body: p.body }));
  return { height: HEIGHT, nodes, marks };
}

/** Group neighbouring bins that have data. */
function runs(places) {
  const groups = [[]];
  for (const place of places) {
    if (place.share === null) groups.push([]);
    else groups.at(-1).push({ ...place, low: place.low ?? place.share, high: place.high ?? place.share });
  }
  return groups.filter((run) => run.length);
}

/** Counts over time as columns, with a line for the limit. */
export function columns({ bins, format, limit, least = 0 }, width) {
  const most = Math.max(...bins.map((bin) => bin.value ?? 0), limit?.value ?? 0, least);
  const { x, y, nodes } = overTime(bins, width, ticks(0, most, 4), format);
  const known = bins.map((bin, i) => ({ ...bin, left: x(i) + 1, right: x(i + 1) - 1 })).filter((bin) => bin.value !== null);
  nodes.push(...known.map(({ left, right, value }) => column(left, right, y(value), y(0))));
  if (limit) {
    nodes.push(line(EDGE.left, y(limit.value), width - EDGE.right, y(limit.value), "limit"));
    nodes.push(text(limit.name, width - EDGE.right, y(limit.value) - 5, { anchor: "end", kind: "direct halo" }));
  }
  const marks = known.map((bin) => ({ key: bin.key, x: (bin.left + bin.right) / 2, y: y(bin.value), along: 0.2, head: bin.head, body: bin.body }));
  return { height: HEIGHT, nodes, marks };
}

/** The interval that holds at every look: a thin line with a tick at each end that is on the scale. */
function always({ least, most }, x, y, [from, to]) {
  if (least === null && most === null) return [];
  const [left, right] = [Math.max(least ?? from, from), Math.min(most ?? to, to)];
  const ends = [least, most].filter((end) => end !== null && end >= from && end <= to);
  return [line(x(left), y, x(right), y, "always"), ...ends.map((end) => line(x(end), y - 5, x(end), y + 5, "always"))];
}

const FLOOR = -0.25;

/** One row per estimate: its name, its value, and below them its intervals on a common scale, cut off at FLOOR. */
export function whiskers({ rows, format }, width) {
  const [rowHeight, side] = [46, 6];
  const lows = rows.flatMap((row) => [row.low ?? row.value, Math.max(row.least ?? 0, FLOOR)]);
  const [least, most] = [Math.min(0, ...lows), Math.max(1, ...rows.map((row) => row.high ?? row.value))];
  const x = scale([least, most], [side, width - side]);
  const foot = rows.length * rowHeight + 6;
  const nodes = ticks(least, most, 4).filter((tick) => tick >= least && tick <= most).flatMap((tick) => [
    line(x(tick), 24, x(tick), foot, tick === 0 ? "axis" : "grid"),
    text(format(tick), x(tick), foot + 16, { anchor: { [least]: "start", [most]: "end" }[tick] ?? "middle", kind: "scale" }),
  ]);
  const marks = rows.map(({ key, name, label, value, low, high, head, body, ...range }, i) => {
    const y = i * rowHeight + 28;
    nodes.push(...always(range, x, y, [least, most]));
    nodes.push(text(cut(name, width - (label.length + 3) * LETTER), side, y - 12, { kind: "name halo" }));
    nodes.push(text(label, width - side, y - 12, { anchor: "end", kind: "scale halo" }));
    if (low !== null && high !== null) nodes.push(line(x(low), y, x(high), y, "whisker"));
    nodes.push(svg("circle", { cx: round(x(value)), cy: y, r: 4.5, class: "dot" }));
    return { key, x: x(value), y, across: 0.1, head, body };
  });
  return { height: foot + 24, nodes, marks };
}

/** A histogram, with the count of each bin. */
export function histogram({ bins, format }, width) {
  const y = scale([0, Math.max(...bins.map(({ count }) => count))], [HEIGHT - EDGE.bottom - 16, EDGE.top + 6]);
  const x = scale([bins[0].from, bins.at(-1).to], [12, width - 12]);
  const nodes = [line(12, y(0), width - 12, y(0), "axis")];
  for (const { from, to, count } of bins.filter((bin) => bin.count > 0)) {
    const [left, right] = [x(from) + 1, x(to) - 1];
    nodes.push(column(left, right, y(count), y(0)));
    nodes.push(text(String(count), (left + right) / 2, y(count) - 5, { anchor: "middle", kind: "direct" }));
  }
  const ends = [...bins.map(({ from }) => from), bins.at(-1).to].filter((_, i) => i % 2 === 0);
  nodes.push(...ends.map((end, i) => text(format(end), x(end), y(0) + 17, { anchor: i ? (i === ends.length - 1 ? "end" : "middle") : "start", kind: "scale" })));
  nodes.push(text("share of advice that a person matches", width / 2, HEIGHT - 6, { anchor: "middle", kind: "scale" }));
  const marks = bins.map(({ key, from, to, count, head, body }) => ({ key, x: x((from + to) / 2), y: y(count), along: 0.2, head, body }));
  return { height: HEIGHT, nodes, marks };
}

const SHAPES = {
  never: (x, y) => svg("circle", { cx: x, cy: y, r: 5, class: "silent" }),
  always: (x, y) => svg("path", { d: `M${x} ${y - 6}L${x + 6} ${y + 5}H${x - 6}Z`, class: "spoken" }),
  chosen: (x, y) => svg("path", { d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`, class: "spoken" }),
  now: (x, y) => svg("rect", { x: x - 5, y: y - 5, width: 10, height: 10, class: "today" }),
};

/** The reward of an episode against its pieces of advice, with named marks. */
export function frontier({ points, marks: named, axis, format }, width) {
  const height = 300;
  const all = [...points, ...named];
  const rows = ticks(Math.min(...all.map((p) => p.low ?? p.value)), Math.max(...all.map((p) => p.high ?? p.value)), 4);
  const places = ticks(0, Math.max(...all.map((p) => p.pieces)), Math.min(6, Math.floor(width / 80)));
  const x = scale([0, places.at(-1)], [EDGE.left + 12, width - EDGE.right - 8]);
  const y = scale([rows[0], rows.at(-1)], [height - 44, EDGE.top + 18]);
  const nodes = [
    ...levels(rows, y, width, format),
    ...places.map((place) => text(format(place), x(place), height - 26, { anchor: "middle", kind: "scale" })),
    text("reward per episode", 4, 12, { kind: "scale" }),
    text(axis, width / 2, height - 8, { anchor: "middle", kind: "scale" }),
    path(points.map((p) => [x(p.pieces), y(p.value)]), "curve"),
  ];
  for (const { pieces, low, high } of named.filter((mark) => (mark.low ?? null) !== null)) {
    nodes.push(line(x(pieces), y(low), x(pieces), y(high), "whisker"));
  }
  const spots = named.map((mark) => ({ ...mark, x: round(x(mark.pieces)), y: round(y(mark.value)) }));
  nodes.push(...spots.map((spot) => (SHAPES[spot.name] ?? SHAPES.now)(spot.x, spot.y)), ...labels(spots, width));
  const marks = [...spots, ...points.map((p) => ({ ...p, x: x(p.pieces), y: y(p.value) }))];
  return { height, nodes, marks: marks.map(({ key, x: left, y: high, head, body }) => ({ key, x: left, y: high, head, body })) };
}

/** The names of marks, each beside its mark and clear of the others. */
function labels(spots, width) {
  const taken = spots.map(({ x, y }) => [x - 8, y - 8, x + 8, y + 8]);
  return spots.map(({ name, x, y }) => {
    const long = name.length * LETTER + 6;
    const boxes = [[12, 8], [12, 26], [-12 - long, -8], [12, -8], [-12 - long, 8], [-long / 2, 26], [-long / 2, -12], [12, 44], [-12 - long, 26]]
      .map(([right, down]) => [x + right, y + down - 14, x + right + long, y + down]);
    const free = (box) => box[0] >= EDGE.left && box[2] <= width && !taken.some((other) => overlap(box, other));
    const box = boxes.find(free) ?? boxes[0];
    taken.push(box);
    return text(name, box[0], box[3] - 3, { kind: "direct halo" });
  });
}

const overlap = (box, other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3];

/** A small strip with an estimate and its interval. */
export function strip({ low, high, value, domain, ends, rule, least = null, most = null }) {
  const [width, y] = [220, 9];
  const x = scale(domain, [6, width - 6]);
  const nodes = [line(6, y, width - 6, y, "track")];
  if (rule !== null && rule !== undefined) nodes.push(line(x(rule), 1, x(rule), 17, "limit"));
  nodes.push(...always({ least, most }, x, y, domain));
  if (low !== null && high !== null) nodes.push(line(x(low), y, x(high), y, "whisker"));
  nodes.push(svg("circle", { cx: round(x(value)), cy: y, r: 5, class: "dot" }));
  nodes.push(text(ends[0], 6, 30, { kind: "scale" }), text(ends[1], width - 6, 30, { anchor: "end", kind: "scale" }));
  return svg("svg", { viewBox: `0 0 ${width} 36`, class: "strip", "aria-hidden": "true" }, nodes);
}
