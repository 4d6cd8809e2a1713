const SAMPLES_A_MS = 16;
const KEPT = 180; // pieces: a turn of half a minute may be written down half a minute after its end

/** Knows when the sound was heard that a session has received. A session's own clock counts only that: it stands still where nothing is sent. */
export class SoundClock {
  #pieces = []; // {from, at}: where in the received sound a piece begins, in ms, and the time at which it began
  #received; // ms

  /** `received` has been heard before, who knows when. */
  constructor(received = 0) {
    this.#received = received;
  }

  get received() {
    return this.#received;
  }

  /** So many samples went out, the last of which was heard at `end`, in ms since 1970. */
  sent(samples, end) {
    const length = samples / SAMPLES_A_MS;
    this.#pieces.push({ from: this.#received, at: end - length });
    if (this.#pieces.length > KEPT) this.#pieces.shift();
    this.#received += length;
  }

  /** The date of a place in the received sound. */
  at(ms) {
    const piece = this.#pieces.findLast(({ from }) => from <= ms) ?? this.#pieces[0] ?? { from: ms, at: Date.now() };
    return new Date(piece.at + ms - piece.from);
  }
}
