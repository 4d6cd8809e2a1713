import { openCamera } from "./devices.js";
import { toJpeg } from "./pictures.js";

const LONGEST = 640;

/** Shows a stream in a video element and takes pictures of it. */
export class Camera {
  #video;
  #stream;
  #facing;

  constructor(video, stream, facing) {
    this.#video = video;
    this.#facing = facing;
    this.#show(stream);
  }

  /** The present picture as base64 JPEG; null while the camera still warms up. */
  picture() {
    const { videoWidth, videoHeight } = this.#video;
    return videoWidth ? toJpeg(this.#video, videoWidth, videoHeight, LONGEST) : null;
  }

  /** To the other side of a phone. */
  async flip() {
    this.#facing = this.#facing === "user" ? "environment" : "user";
    this.#release(); // many phones cannot open both at once
    this.#show(await openCamera(this.#facing));
  }

  close() {
    this.#release();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  #show(stream) {
    this.#stream = stream;
    this.#video.srcObject = stream;
    this.#video.classList.toggle("mirrored", this.#facing === "user");
    this.#video.hidden = false;
    this.#video.play();
  }

  #release() {
    for (const track of this.#stream.getVideoTracks()) track.stop();
  }
}
