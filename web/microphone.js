/** The sound of a stream as blocks of 16 kHz mono, given to `onBlock` until it is closed. */
export class Microphone {
  #context;
  #node;
  #source;
  #track;
  #onLost;
  #muted = false;

  /** `onLost` is called when the device is gone. */
  static async open(stream, onBlock, onLost) {
    const microphone = new Microphone();
    const context = new AudioContext({ latencyHint: "interactive" });
    microphone.#context = context;
    microphone.#onLost = onLost;
    await context.audioWorklet.addModule("microphone_worklet.js");
    microphone.#node = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    microphone.#node.port.onmessage = ({ data }) => onBlock(data);
    microphone.use(stream);
    await context.resume();
    return microphone;
  }

  /** From now on the sound of this stream. */
  use(stream) {
    this.#source?.disconnect();
    if (this.#track) this.#track.onended = null;
    this.#track = stream.getAudioTracks()[0];
    this.#track.onended = this.#onLost; // not when it is stopped here
    this.#track.enabled = !this.#muted;
    this.#source = this.#context.createMediaStreamSource(stream);
    this.#source.connect(this.#node);
  }

  /** A muted microphone gives silence: the seconds go on. */
  set muted(value) {
    this.#muted = value;
    this.#track.enabled = !value;
  }

  /** The stream itself stays its owner's. */
  close() {
    this.#context.close();
  }
}

/** How loud a block is: 0 silent, 1 as loud as can be; speech is around a half. */
export function loudness(block) {
  let sum = 0;
  for (const sample of block) sum += sample * sample;
  const decibels = 10 * Math.log10(sum / block.length + 1e-9);
  return Math.max(0, Math.min(1, (decibels + 60) / 60));
}
