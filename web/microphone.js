/** The sound of a stream as blocks of 16 kHz mono, given to `onBlock` until it is closed. */
export class Microphone {
  #context;
  #track;

  /** `onLost` is called when the device is gone. */
  static async open(stream, onBlock, onLost) {
    const microphone = new Microphone();
    const context = new AudioContext({ latencyHint: "interactive" });
    microphone.#context = context;
    microphone.#track = stream.getAudioTracks()[0];
    microphone.#track.onended = onLost; // not when it is stopped here
    await context.audioWorklet.addModule("microphone_worklet.js");
    const node = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = ({ data }) => onBlock(data);
    context.createMediaStreamSource(stream).connect(node);
    await context.resume();
    return microphone;
  }

  /** A muted microphone gives silence: the seconds go on. */
  set muted(value) {
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
