/** Plays tracks {rate, samples} together, from anywhere. `onend()` is called when they are over. */
export class ReplayPlayer {
  #context = new AudioContext();
  #buffers;
  #sources = [];
  #started = 0; // time of the context at which position 0 would have been
  #position = 0;
  #seconds;
  #onend;

  constructor(tracks, seconds, onend) {
    this.#seconds = seconds;
    this.#onend = onend;
    this.#buffers = tracks.map(({ rate, samples }) => {
      const buffer = this.#context.createBuffer(1, samples.length, rate);
      buffer.copyToChannel(samples, 0);
      return buffer;
    });
  }

  get playing() {
    return this.#sources.length > 0;
  }

  get position() {
    return this.playing ? Math.min(this.#context.currentTime - this.#started, this.#seconds) : this.#position;
  }

  async play() {
    await this.#context.resume();
    if (this.playing) return;
    if (this.#position >= this.#seconds) this.#position = 0;
    this.#started = this.#context.currentTime - this.#position;
    this.#sources = this.#buffers.map((buffer) => {
      const source = new AudioBufferSourceNode(this.#context, { buffer });
      source.connect(this.#context.destination);
      source.start(0, this.#position);
      return source;
    });
    const first = this.#sources[0];
    first.onended = () => {
      if (this.#sources[0] !== first) return;
      this.pause();
      this.#onend();
    };
  }

  pause() {
    this.#position = this.position;
    for (const source of this.#sources.splice(0)) source.stop();
  }

  async seek(position) {
    const went = this.playing;
    this.pause();
    this.#position = position;
    if (went) await this.play();
  }

  close() {
    this.pause();
    this.#context.close();
  }
}
