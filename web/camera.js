import { openCamera, openScreen } from "./devices.js";
import { toJpeg } from "./pictures.js";

const LONGEST = { camera: 640, screen: 1344 }; // of a screen the letters have to be read

/**
 * Shows a stream in a video element and takes pictures of it: the camera's, or the screen's that the user shares. `on.change(source)` is called
 * with "camera", "screen" or "off", `on.lost()` when the device is gone, and the camera then closed.
 */
export class Camera {
  #video;
  #stream;
  #facing;
  #wanted; // id of the device that the user chose, or empty
  #on; // {change, lost}
  #source = "camera";
  #changing = false;
  #closed = false;

  constructor(video, stream, facing, wanted, on) {
    this.#video = video;
    this.#facing = facing;
    this.#wanted = wanted;
    this.#on = on;
    this.#show(stream, "camera");
  }

  /** The present picture as base64 JPEG; null while there is none, as when the camera still warms up. */
  picture() {
    const { videoWidth, videoHeight } = this.#video;
    const shows = videoWidth && this.#source !== "off" && !this.#changing && !this.#closed;
    return shows ? toJpeg(this.#video, videoWidth, videoHeight, LONGEST[this.#source]) : null;
  }

  /** To the other side of a phone, or back if that cannot be opened. */
  flip() {
    const other = this.#facing === "user" ? "environment" : "user";
    return this.#open([other, ""], [this.#facing, this.#wanted]);
  }

  /** Another camera, by its id. */
  use(id) {
    const before = this.#wanted;
    this.#wanted = id;
    if (this.#source === "camera") return this.#open([this.#facing, id], [this.#facing, before]);
  }

  /** No pictures until it is on again; the device's light goes out. */
  turn(on) {
    if (on) return this.#open([this.#facing, this.#wanted]);
    if (this.#changing || this.#closed) return;
    this.#release();
    this.#video.srcObject = null;
    this.#video.hidden = true;
    this.#become("off");
  }

  /** The screen that the user then chooses, in place of the camera; nothing changes if they choose none. */
  async share() {
    if (this.#changing || this.#closed) return;
    const stream = await openScreen().catch(() => null);
    if (!stream) return;
    if (this.#changing || this.#closed) return void stopAll(stream);
    this.#release();
    this.#show(stream, "screen");
  }

  close() {
    this.#closed = true;
    this.#release();
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }

  /** The first camera of these, [facing, id], that can be opened. */
  async #open(...wishes) {
    if (this.#changing || this.#closed) return;
    this.#changing = true;
    this.#release(); // many phones cannot open two at once
    for (const [facing, id] of wishes) {
      const stream = await openCamera(facing, id).catch(() => null);
      if (!stream) continue;
      if (this.#closed) return void stopAll(stream);
      this.#facing = facing;
      this.#wanted = id;
      this.#changing = false;
      return this.#show(stream, "camera");
    }
    this.#lose();
  }

  #lose() {
    if (this.#closed) return;
    this.close();
    this.#on.lost();
  }

  #show(stream, source) {
    this.#stream = stream;
    const ended = () => (source === "screen" ? this.turn(true) : this.#lose());
    for (const track of stream.getVideoTracks()) track.onended = ended; // not when it is stopped here
    this.#video.srcObject = stream;
    this.#video.classList.toggle("mirrored", source === "camera" && this.#facing === "user");
    this.#video.hidden = false;
    this.#video.play().catch(() => {}); // it may be turned off before it plays
    this.#become(source);
  }

  #become(source) {
    this.#source = source;
    this.#on.change(source);
  }

  #release() {
    stopAll(this.#stream);
  }
}

function stopAll(stream) {
  for (const track of stream.getVideoTracks()) track.stop();
}
