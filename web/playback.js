const RATE = 24000;
const LEAD_S = 0.08; // before the first sound of a row: room for one that comes a little late
const FADE_S = 0.02; // a cut without a click
const MOST_AHEAD_S = 300; // later sound is left out

/** Plays 24 kHz sound gaplessly in the order in which it comes. Made in answer to a click, as browsers ask. */
export class Playback {
  #context = new AudioContext({ sampleRate: RATE });
  #meter = this.#context.createAnalyser();
  #loudness = this.#context.createGain();
  #wave = new Float32Array(512);
  #row; // gain that all sources of the present row run through
  #sources = new Map(); // source -> {samples, start}
  #end = 0; // when what is queued will have been played
  #played = 0;
  #onDrained;
  #onPlayed;

  /** `onDrained` is called when everything has been played out, not when it was cut; `onPlayed(samples)` with each piece once it was heard. */
  constructor(onDrained, onPlayed = () => {}) {
    this.#onDrained = onDrained;
    this.#onPlayed = onPlayed;
    this.#meter.fftSize = 512;
    this.#meter.connect(this.#loudness);
    this.#loudness.connect(this.#context.destination);
    this.#newRow();
    this.#context.resume();
  }

  /** 0 is silent, 1 as it comes. */
  set volume(value) {
    this.#loudness.gain.value = value;
  }

  /** The id of a loudspeaker; empty for the usual one, which also stands in for one that is not there. */
  set speaker(id) {
    this.#context.setSinkId?.(id).catch(() => {});
  }

  /** What is to be heard waits. */
  set paused(value) {
    if (value) this.#context.suspend();
    else this.#context.resume();
  }

  push(samples) {
    if (samples.length === 0 || this.secondsAhead > MOST_AHEAD_S) return;
    const buffer = this.#context.createBuffer(1, samples.length, RATE);
    buffer.copyToChannel(samples, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#row);
    const start = Math.max(this.#end, this.#context.currentTime + (this.busy ? 0 : LEAD_S));
    this.#sources.set(source, { samples, start });
    source.onended = () => {
      this.#played += buffer.duration;
      this.#onPlayed(samples);
      this.#sources.delete(source);
      if (!this.busy) this.#onDrained();
    };
    source.start(start);
    this.#end = start + buffer.duration;
  }

  /** Silence at once; what was queued is gone. */
  cut() {
    if (!this.busy) return;
    const now = this.#context.currentTime;
    this.#row.gain.setValueAtTime(1, now);
    this.#row.gain.linearRampToValueAtTime(0, now + FADE_S);
    for (const [source, { samples, start }] of this.#sources) {
      source.onended = null;
      source.stop(now + FADE_S);
      if (start < now) this.#onPlayed(samples.subarray(0, Math.round((now - start) * RATE)));
    }
    this.#sources.clear();
    this.#end = 0;
    this.#newRow();
  }

  get busy() {
    return this.#sources.size > 0;
  }

  get secondsAhead() {
    return Math.max(0, this.#end - this.#context.currentTime);
  }

  get secondsPlayed() {
    return this.#played;
  }

  /** What sounds now, for `loudness`. */
  get wave() {
    this.#meter.getFloatTimeDomainData(this.#wave);
    return this.#wave;
  }

  close() {
    this.cut();
    this.#context.close();
  }

  #newRow() {
    this.#row = this.#context.createGain();
    this.#row.connect(this.#meter);
  }
}
