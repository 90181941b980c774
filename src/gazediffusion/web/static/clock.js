// The time of a replay: it plays, pauses, jumps, and loops over the range of the traces' zoom.
// Dispatches "tick" when the time changes and "change" when anything else does.

const LONGEST_FRAME_MS = 100; // A page that was hidden resumes where it stopped.

export class Clock extends EventTarget {
  time = 0;
  duration = 0;
  first = 0;
  last = 0;
  speed = 1;
  isPlaying = false;
  #frame = null;
  #before = null;

  load(duration) {
    this.duration = this.last = duration;
    this.time = this.first = 0;
    this.#dispatch("change");
    this.#dispatch("tick");
  }

  play() {
    if (this.isPlaying || !this.duration) return;
    this.isPlaying = true;
    if (this.time >= this.last) this.time = this.first;
    this.#before = null;
    this.#frame = requestAnimationFrame((now) => this.#step(now));
    this.#dispatch("change");
  }

  pause() {
    if (!this.isPlaying) return;
    this.isPlaying = false;
    cancelAnimationFrame(this.#frame);
    this.#dispatch("change");
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.duration);
    if (this.time < this.first || this.time > this.last) {
      this.first = 0;
      this.last = this.duration;
      this.#dispatch("change");
    }
    this.#dispatch("tick");
  }

  setRange(first, last) {
    const shortest = Math.min(40, this.duration);
    this.first = Math.min(Math.max(first, 0), this.duration - shortest);
    this.last = Math.max(Math.min(last, this.duration), this.first + shortest);
    this.time = Math.min(Math.max(this.time, this.first), this.last);
    this.#dispatch("change");
    this.#dispatch("tick");
  }

  setSpeed(speed) {
    this.speed = speed;
    this.#dispatch("change");
  }

  get isWhole() {
    return this.first <= 0 && this.last >= this.duration;
  }

  #step(now) {
    if (!this.isPlaying) return;
    const passed = this.#before === null ? 0 : Math.min(now - this.#before, LONGEST_FRAME_MS);
    this.#before = now;
    this.time += passed * this.speed;
    if (this.time >= this.last) this.time = this.first;
    this.#dispatch("tick");
    this.#frame = requestAnimationFrame((later) => this.#step(later));
  }

  #dispatch(name) {
    this.dispatchEvent(new Event(name));
  }
}
