// Watching a simulated person: pause, one move at a time, and a speed.

import { count } from "./play-words.js";

export class Watch {
  /** `beat` makes the next move, or starts the next game. */
  constructor(find, beat) {
    this.find = find;
    this.beat = beat;
    this.paused = false;
    find("pause").addEventListener("click", () => this.pause(!this.paused));
    find("one-move").addEventListener("click", () => {
      this.pause(true);
      beat();
    });
    find("speed").addEventListener("input", () => this.tell());
    this.tell();
  }

  /** Whether the next game should follow without being asked for. */
  get goesOn() {
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

  /** Stand paused or ready, without a move. */
  reset(paused = false) {
    this.stop();
    this.paused = paused;
    this.find("pause").textContent = paused ? "Go on" : "Pause";
  }

  /** Say the speed; a fast bird also glides faster. */
  tell() {
    const speed = Number(this.find("speed").value);
    this.find("speed-told").textContent = `${count(speed, "move")} a second`;
    this.find("board").style.setProperty("--glide", `${Math.min(.22, .7 / speed)}s`);
  }
}
