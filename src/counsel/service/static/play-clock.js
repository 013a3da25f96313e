// The clock of the timed mode: a bar that drains, by whole seconds where motion is reduced.

const TICK = 100;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

export class Clock {
  constructor(root, out) {
    Object.assign(this, { root, out, bar: root.querySelector(".clock-left"), words: root.querySelector("p") });
  }

  /** Show the bar, full and at rest. */
  rest(seconds) {
    this.stop();
    this.root.classList.toggle("hidden", seconds === 0);
    this.bar.style.transform = "scaleX(1)";
    this.words.textContent = `${seconds} seconds per move. The clock starts after your first move; when it runs out, the bird repeats your last move.`;
  }

  start(seconds) {
    this.stop();
    this.left = this.whole = 1000 * seconds;
    this.draw();
    this.timer = setInterval(() => this.tick(), TICK);
  }

  stop() {
    clearInterval(this.timer);
  }

  /** Time passes only while the player can see the game. */
  tick() {
    if (document.hidden || document.querySelector("dialog[open]")) return;
    this.left -= TICK;
    this.draw();
    if (this.left > 0) return;
    this.stop();
    this.out();
  }

  draw() {
    const shown = STILL.matches ? 1000 * Math.ceil(this.left / 1000) : this.left;
    this.bar.style.transform = `scaleX(${Math.max(0, shown / this.whole)})`;
    this.words.textContent = `${Math.ceil(this.left / 1000)} s left; then the bird repeats your last move.`;
  }
}
