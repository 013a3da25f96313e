// The sprites on the board (bird, star, walls, clouds, marks), drawn around (0, 0) for cells of 40 units.

import { svg } from "./common.js";

export const CELL = 40;

/** The bird, looking right. Its wing, eyes and tilt are moved by classes in play.css. */
export function bird() {
  return svg("g", { class: "bird-body" }, [
    svg("path", { class: "bird-tail", d: "M-9 0 L-18.5 -5.5 Q-16 -.5 -18.5 5 L-9 5 Z" }),
    svg("path", { class: "bird-tuft", d: "M-1 -10 Q-3.5 -14.5 -7 -14.5 M1 -10.5 Q.5 -15 -2 -16.5" }),
    svg("ellipse", { class: "bird-coat", rx: 13, ry: 11.5 }),
    svg("path", { class: "bird-belly", d: "M-5.5 8.6 Q-2 .8 5.5 1.4 Q11 2 12.2 4 Q9.5 11.4 0 11.5 Q-3 11.3 -5.5 8.6 Z" }),
    svg("path", { class: "bird-beak", d: "M11.6 -3.6 L18.6 -.4 L11.8 3 Z" }),
    svg("circle", { class: "bird-cheek", cx: 9, cy: 3.4, r: 2 }),
    svg("g", { class: "bird-eye" }, [
      svg("circle", { class: "bird-white", cx: 6, cy: -4, r: 3.7 }),
      svg("circle", { class: "bird-pupil", cx: 7.1, cy: -3.8, r: 2 }),
      svg("circle", { class: "bird-glint", cx: 7.7, cy: -4.7, r: .65 }),
    ]),
    svg("path", { class: "bird-eye-shut", d: "M3 -4 Q6 -1 9 -4" }),
    svg("path", { class: "bird-wing", d: "M1.5 -2.5 Q-6 -6 -12.5 -.5 Q-10.5 1 -11.5 3 Q-9 3.2 -9 5.4 Q-1 7.5 1.5 -2.5 Z" }),
  ]);
}

/** The bird as it would be after taking the advice. */
export const ghostBird = () => svg("g", { class: "ghost-bird" }, [bird()]);

/** A star with five soft points. */
export function star() {
  const points = Array.from({ length: 10 }, (_, index) => {
    const angle = (index * Math.PI) / 5 - Math.PI / 2;
    const radius = index % 2 === 0 ? 11.5 : 5.4;
    return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
  });
  return svg("path", { class: "star", d: `M${points.join("L")}Z` });
}

/** The outline of a wall: it joins neighbouring walls, and its free corners are round. */
export function wall(isWall, row, column) {
  const joined = { up: isWall(row - 1, column), down: isWall(row + 1, column), left: isWall(row, column - 1), right: isWall(row, column + 1) };
  const [left, right] = [column * CELL, (column + 1) * CELL];
  const [up, down] = [row * CELL, (row + 1) * CELL];
  const round = (side, other) => (side || other ? 0 : 10);
  const [a, b] = [round(joined.left, joined.up), round(joined.up, joined.right)];
  const [c, d] = [round(joined.right, joined.down), round(joined.down, joined.left)];
  return `M${left + a} ${up}H${right - b}q${b} 0 ${b} ${b}V${down - c}q0 ${c} ${-c} ${c}H${left + d}q${-d} 0 ${-d} ${-d}V${up + a}q0 ${-a} ${a} ${-a}Z`;
}

/** The colour gradients: the sky, and the glow of a cell where advice matters. */
export function paints() {
  const stop = (name, offset) => svg("stop", { class: name, offset });
  return svg("defs", {}, [
    svg("linearGradient", { id: "sky-paint", x2: 0, y2: 1 }, [stop("sky-high", 0), stop("sky-low", 1)]),
    svg("radialGradient", { id: "heat-paint" }, [stop("heat-core", 0), stop("heat-core", .45), stop("heat-rim", 1)]),
  ]);
}

export function cloud(x, y, size) {
  return svg("path", { class: "cloud", transform: `translate(${x} ${y}) scale(${size})`, d: "M-34 10a11 11 0 0 1 3 -21a16 16 0 0 1 29 -6a13 13 0 0 1 21 8a9.6 9.6 0 0 1 5 19Z" });
}

/** The mark a move leaves on the path: ▲ advice taken, △ not taken, ● silence. */
export function pathMark(kind) {
  if (kind === "silent") return svg("circle", { class: "path-mark silent", r: 3.2 });
  return svg("path", { class: `path-mark ${kind}`, d: "M0 -6.5 L6.2 4.6 L-6.2 4.6 Z" });
}
