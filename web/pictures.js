import { fromBytes } from "./base64.js";

const QUALITY = 0.85;

/** Whatever can be drawn (a camera's video, an image) as a base64 JPEG whose longer side has at most `longest` pixels. */
export async function toJpeg(source, width, height, longest) {
  const scale = Math.min(1, longest / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
  canvas.getContext("2d").drawImage(source, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
  return fromBytes(new Uint8Array(await blob.arrayBuffer()));
}
