import { openCamera } from "./devices.js";
import { toJpeg } from "./pictures.js";

const LONGEST = 640;

/** Shows a stream in a video element and takes pictures of it. `onLost` is called when the device is gone, and the camera then closed. */
export class Camera {
  #video;
  #stream;
  #facing;
  #onLost;
  #flipping = false;
  #closed = false;

  constructor(video, stream, facing, onLost) {
    this.#video = video;
    this.#facing = facing;
    this.#onLost = onLost;
    this.#show(stream);
  }

  /** The present picture as base64 JPEG; null while there is none, as when the camera still warms up. */
  picture() {
    const { videoWidth, videoHeight } = this.#video;
    return videoWidth && !this.#flipping && !this.#closed ? toJpeg(this.#video, videoWidth, videoHeight, LONGEST) : null;
  }

  /** To the other side of a phone, or back if that cannot be opened. */
  async flip() {
    if (this.#flipping || this.#closed) return;
    this.#flipping = true;
    const before = this.#facing;
    const after = before === "user" ? "environment" : "user";
    this.#release(); // many phones cannot open both at once
    for (const facing of [after, before]) {
      const stream = await openCamera(facing).catch(() => null);
      if (!stream) continue;
      if (this.#closed) return void stopAll(stream);
      this.#facing = facing;
      this.#flipping = false;
      return this.#show(stream);
    }
    this.#lose();
  }

  close() {
    this.#closed = true;
    this.#release();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  #lose() {
    if (this.#closed) return;
    this.close();
    this.#onLost();
  }

  #show(stream) {
    this.#stream = stream;
    for (const track of stream.getVideoTracks()) track.onended = () => this.#lose(); // not when it is stopped here
    this.#video.srcObject = stream;
    this.#video.classList.toggle("mirrored", this.#facing === "user");
    this.#video.hidden = false;
    this.#video.play();
  }

  #release() {
    stopAll(this.#stream);
  }
}

function stopAll(stream) {
  for (const track of stream.getVideoTracks()) track.stop();
}
