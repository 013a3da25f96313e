// The controls for watching a simulated person play: pause, one move at a time, and speed.

import { count } from "./play-sentences.js";

export class Autoplay {
  /** `beat` makes the next move, or starts the next game. */
  constructor(find, beat) {
    Object.assign(this, { find, beat, paused: false });
    find("pause").addEventListener("click", () => this.pause(!this.paused));
    find("one-move").addEventListener("click", () => {
      this.pause(true);
      beat();
    });
    find("speed").addEventListener("input", () => this.showSpeed());
    this.showSpeed();
  }

  /** Whether the next game starts by itself. */
  get continues() {
    return this.find("go-on").checked && !this.paused;
  }

  /** Plan the next beat, `beats` beats from now. */
  plan(beats = 1) {
    this.stop();
    if (!this.paused) this.timer = setTimeout(this.beat, (1000 * beats) / Number(this.find("speed").value));
  }

  stop() {
    clearTimeout(this.timer);
  }

  pause(paused) {
    this.reset(paused);
    if (!paused) this.beat();
  }

  /** Pause or get ready, without a move. */
  reset(paused = false) {
    this.stop();
    this.paused = paused;
    this.find("pause").textContent = paused ? "Continue" : "Pause";
  }

  /** Show the speed; a fast bird also glides faster. */
  showSpeed() {
    const speed = Number(this.find("speed").value);
    this.find("speed-label").textContent = `${count(speed, "move")} per second`;
    this.find("board").style.setProperty("--glide", `${Math.min(.22, .7 / speed)}s`);
  }
}
