// Bytes and little-endian float32 samples to and from base64.

const STRIDE = 0x8000; // as many arguments as every browser takes in one call

export function fromBytes(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += STRIDE) text += String.fromCharCode.apply(null, bytes.subarray(i, i + STRIDE));
  return btoa(text);
}

export function fromSamples(samples) {
  return fromBytes(new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength));
}

export function toBytes(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function toSamples(base64) {
  return new Float32Array(toBytes(base64).buffer);
}
