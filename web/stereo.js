import { Resampler } from "./resampler.js";
import { toWav } from "./wav.js";

const RATE = 24000;

/** Two sides as one file. A side is {rate, second(n)}: its samples of second number n, from -1 to 1, or null for silence. */
export function toStereoWav(seconds, left, right) {
  const both = new Int16Array(2 * Math.ceil(seconds * RATE));
  write(both, 0, left);
  write(both, 1, right);
  return toWav(both, 2, RATE);
}

function write(both, channel, { rate, second }) {
  const resampler = rate === RATE ? null : new Resampler(rate, RATE);
  const silence = new Float32Array(rate);
  for (let n = 0, at = channel; at < both.length; n++) {
    const samples = second(n) ?? silence;
    for (const sample of resampler ? resampler.process(samples) : samples) {
      if (at >= both.length) return;
      both[at] = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
      at += 2;
    }
    if (samples.length < rate && !resampler) at = channel + 2 * (n + 1) * RATE;
  }
}
