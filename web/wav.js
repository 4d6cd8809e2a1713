const HEADER_BYTES = 44;

/** A file of 16-bit samples; of several channels, one of each in turn. */
export function toWav(samples, channels, rate) {
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const text = (at, letters) => [...letters].forEach((letter, i) => header.setUint8(at + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  header.setUint32(4, HEADER_BYTES - 8 + samples.byteLength, true);
  text(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true); // PCM
  header.setUint16(22, channels, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * channels * 2, true);
  header.setUint16(32, channels * 2, true);
  header.setUint16(34, 16, true);
  text(36, "data");
  header.setUint32(40, samples.byteLength, true);
  return new Blob([header, samples], { type: "audio/wav" });
}

/** The samples of a mono file of 16 bits with a plain header, as the server writes it. */
export function readWav(bytes) {
  const view = new DataView(bytes);
  const samples = new Float32Array(view.getUint32(40, true) / 2);
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(HEADER_BYTES + 2 * i, true) / 32768;
  return { rate: view.getUint32(24, true), samples };
}
