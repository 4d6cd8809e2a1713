import { Resampler } from "./resampler.js";

const BLOCK = 640; // 40 ms at 16 kHz: few messages, and a second is a whole number of them

/** Runs on the audio thread: what the microphone gives, as blocks of 16 kHz mono. */
class MicrophoneProcessor extends AudioWorkletProcessor {
  #resampler = new Resampler(Math.round(sampleRate), 16000);
  #block = new Float32Array(BLOCK);
  #filled = 0;

  process([channels]) {
    if (channels.length === 0) return true;
    for (const sample of this.#resampler.process(channels[0])) {
      this.#block[this.#filled++] = Math.max(-1, Math.min(1, sample));
      if (this.#filled < BLOCK) continue;
      this.port.postMessage(this.#block, [this.#block.buffer]);
      this.#block = new Float32Array(BLOCK);
      this.#filled = 0;
    }
    return true;
  }
}

registerProcessor("microphone", MicrophoneProcessor);
