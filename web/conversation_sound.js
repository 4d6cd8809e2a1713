import { toStereoWav } from "./stereo.js";

const HEARD_RATE = 16000;
const PLAYED_RATE = 24000;
const MOST_S = 1200; // later sound is left out: 100 MB of a browser's memory
const JITTER_S = 0.25; // what comes so much sooner or later than it should follows what was before

/** Sound at its place in time, in chunks of a second: what nobody spoke is not kept. */
class Track {
  #rate;
  #seconds = new Map(); // number of the second -> samples
  #end = 0;

  constructor(rate) {
    this.#rate = rate;
  }

  get seconds() {
    return this.#end / this.#rate;
  }

  /** Samples the last of which was heard at `end`, in seconds. */
  add(samples, end) {
    const due = Math.round(end * this.#rate) - samples.length;
    let at = due - this.#end > JITTER_S * this.#rate ? due : this.#end;
    for (const sample of samples) {
      const second = Math.floor(at / this.#rate);
      if (second >= MOST_S) return;
      if (!this.#seconds.has(second)) this.#seconds.set(second, new Int16Array(this.#rate));
      this.#seconds.get(second)[at % this.#rate] = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
      this.#end = ++at;
    }
  }

  /** As a side of a stereo file. */
  get side() {
    const samples = (number) => this.#seconds.get(number);
    return { rate: this.#rate, second: (number) => (samples(number) ? Float32Array.from(samples(number), (sample) => sample / 32767) : null) };
  }
}

/** What was heard of a conversation on this side: the user, and the model as it was played. Times are those of performance.now(). */
export class ConversationSound {
  #begin;
  #user = new Track(HEARD_RATE);
  #model = new Track(PLAYED_RATE);

  constructor(begin) {
    this.#begin = begin;
  }

  get seconds() {
    return Math.max(this.#user.seconds, this.#model.seconds);
  }

  /** A block of the microphone's that just ended. */
  heard(block, now) {
    this.#user.add(block, (now - this.#begin) / 1000);
  }

  /** A piece of the model's that has just been played out or cut. */
  played(samples, now) {
    this.#model.add(samples, (now - this.#begin) / 1000);
  }

  /** A stereo file: the user on the left, the model on the right. */
  toWav() {
    return toStereoWav(this.seconds, this.#user.side, this.#model.side);
  }
}
