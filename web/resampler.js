const ZERO_CROSSINGS = 16; // on each side of the kernel
const PASSED = 0.92; // part of the lower Nyquist frequency that is kept

function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

/** A windowed sinc for an output that lies `fraction` of a sample behind the middle of the window; its sum is 1. */
function kernel(fraction, half, cutoff) {
  const taps = new Float32Array(2 * half);
  for (let i = 0; i < taps.length; i++) {
    const u = i - (half - 1) - fraction;
    const x = Math.PI * cutoff * u;
    const hann = 0.5 + 0.5 * Math.cos((Math.PI * u) / half);
    taps[i] = (x === 0 ? 1 : Math.sin(x) / x) * hann;
  }
  const sum = taps.reduce((a, b) => a + b);
  return taps.map((tap) => tap / sum);
}

/** A stream of samples at one rate, given in blocks, comes out at another: a polyphase filter, exact for whole rates. */
export class Resampler {
  #up;
  #down;
  #half;
  #kernels;
  #held;
  #phase = 0;

  constructor(from, to) {
    const shared = gcd(from, to);
    this.#up = to / shared;
    this.#down = from / shared;
    const cutoff = Math.min(1, to / from) * PASSED;
    this.#half = Math.ceil(ZERO_CROSSINGS / cutoff);
    this.#kernels = Array.from({ length: this.#up }, (_, phase) => kernel(phase / this.#up, this.#half, cutoff));
    this.#held = new Float32Array(this.#half - 1); // silence before the first sample: output 0 is input 0
  }

  process(block) {
    const held = new Float32Array(this.#held.length + block.length);
    held.set(this.#held);
    held.set(block, this.#held.length);
    const window = 2 * this.#half;
    const out = [];
    let first = 0;
    while (first + window <= held.length) {
      const taps = this.#kernels[this.#phase];
      let sum = 0;
      for (let i = 0; i < window; i++) sum += taps[i] * held[first + i];
      out.push(sum);
      this.#phase += this.#down;
      first += Math.floor(this.#phase / this.#up);
      this.#phase %= this.#up;
    }
    this.#held = held.slice(first);
    return Float32Array.from(out);
  }
}
