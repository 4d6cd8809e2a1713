import { Resampler } from "./resampler.js";
import { toWav } from "./wav.js";

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

  /** One second of it: 16-bit samples, or null for silence. */
  second(number) {
    return this.#seconds.get(number) ?? null;
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
    const count = Math.ceil(this.seconds * PLAYED_RATE);
    const both = new Int16Array(2 * count);
    const up = new Resampler(HEARD_RATE, PLAYED_RATE);
    const silence = new Float32Array(HEARD_RATE);
    let at = 0;
    for (let second = 0; at < count; second++) {
      const heard = this.#user.second(second);
      for (const sample of up.process(heard ? Float32Array.from(heard) : silence)) {
        if (at < count) both[2 * at++] = Math.max(-32768, Math.min(32767, Math.round(sample)));
      }
    }
    for (let second = 0; second * PLAYED_RATE < count; second++) {
      this.#model.second(second)?.forEach((sample, i) => (both[2 * (second * PLAYED_RATE + i) + 1] = sample)); // beyond the end nothing is written
    }
    return toWav(both, 2, PLAYED_RATE);
  }
}
