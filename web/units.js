export const UNIT_SAMPLES = 16000;

/** Gathers blocks of samples into units of one second, on the grid on which the server cuts them too. */
export class Units {
  #unit = new Float32Array(UNIT_SAMPLES);
  #filled = 0;
  #given = 0; // samples of the current second that have gone out already
  #onUnit;

  constructor(onUnit) {
    this.#onUnit = onUnit;
  }

  push(block) {
    while (block.length > 0) {
      const taken = Math.min(block.length, UNIT_SAMPLES - this.#filled);
      this.#unit.set(block.subarray(0, taken), this.#filled);
      this.#filled += taken;
      block = block.subarray(taken);
      if (this.#filled < UNIT_SAMPLES) return;
      this.#onUnit(this.#unit.slice(this.#given));
      this.#filled = this.#given = 0;
    }
  }

  /** What there is of the current second, at least one sample: for what cannot wait for its end. */
  cut() {
    while (this.#filled === this.#given) this.push(new Float32Array(1));
    const part = this.#unit.slice(this.#given, this.#filled);
    this.#given = this.#filled;
    return part;
  }
}
