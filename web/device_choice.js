import { openDevices } from "./devices.js";
import { wordsForDevice } from "./errors.js";
import { kept } from "./kept.js";
import { loudness, Microphone } from "./microphone.js";
import { words } from "./words.js";

const KINDS = { microphone: "audioinput", speaker: "audiooutput", camera: "videoinput" };
const FIELDS = { microphone: "microphone", speaker: "loudspeaker", camera: "camera" }; // their ids
const element = (id) => document.getElementById(id);

/**
 * Which microphone, loudspeaker and camera the user likes best, in the settings; the browser keeps it. `onChange(kind)` is called when one is
 * chosen. A level and a picture show what they give, before a conversation on trial, and during it what goes out.
 */
export class DeviceChoice {
  #trial = null; // {stream, microphone} while the devices are tried
  #trials = 0;

  constructor(onChange) {
    for (const kind of Object.keys(KINDS)) {
      element(FIELDS[kind]).addEventListener("change", () => {
        kept.set(kind, element(FIELDS[kind]).value);
        onChange(kind);
        if (this.#trial) this.#try();
      });
    }
    element("speaker-choice").hidden = !("setSinkId" in AudioContext.prototype);
    element("try").addEventListener("click", () => (this.#trial ? this.stop() : this.#try()));
    element("settings").addEventListener("close", () => this.stop());
    navigator.mediaDevices?.addEventListener("devicechange", () => this.list());
  }

  get microphone() {
    return kept.get("microphone") ?? "";
  }

  get speaker() {
    return kept.get("speaker") ?? "";
  }

  get camera() {
    return kept.get("camera") ?? "";
  }

  /** What is there now, while the settings are open; browsers tell names only once a device was opened. */
  async list() {
    if (!element("settings").open) return;
    const found = (await navigator.mediaDevices?.enumerateDevices().catch(() => [])) ?? [];
    for (const [name, kind] of Object.entries(KINDS)) {
      const devices = found.filter((device) => device.kind === kind && device.deviceId && device.deviceId !== "default");
      const options = devices.map(({ deviceId, label }, i) => new Option(label || words("devices.number", { number: i + 1 }), deviceId));
      const field = element(FIELDS[name]);
      field.replaceChildren(new Option(words("devices.usual"), ""), ...options);
      field.value = devices.some(({ deviceId }) => deviceId === this[name]) ? this[name] : "";
    }
  }

  /** A block of what the microphone gives. */
  hear(block) {
    element("level").value = loudness(block);
  }

  stop() {
    this.#trials++;
    this.#trial?.microphone?.close();
    for (const track of this.#trial?.stream.getTracks() ?? []) track.stop();
    this.#trial = null;
    element("trial").hidden = true;
    element("trial").srcObject = null;
    element("level").value = 0;
    element("try").textContent = words("devices.try");
  }

  /** In the present language. */
  show() {
    element("try").textContent = words(this.#trial ? "devices.try.stop" : "devices.try");
    this.list();
  }

  async #try() {
    this.stop();
    const number = this.#trials;
    element("device-state").textContent = "";
    try {
      const stream = await openDevices(document.body.dataset.mode === "video" ? "user" : null, this);
      if (number !== this.#trials) return stream.getTracks().forEach((track) => track.stop());
      const trial = (this.#trial = { stream });
      const mine = (what) => (block) => trial === this.#trial && what(block); // a block may be under way when it ends
      trial.microphone = await Microphone.open(stream, mine((block) => this.hear(block)), mine(() => this.stop()));
      if (number !== this.#trials) return trial.microphone.close();
    } catch (fault) {
      this.stop();
      element("device-state").textContent = wordsForDevice(fault);
      return;
    }
    const { stream } = this.#trial;
    if (stream.getVideoTracks().length) {
      element("trial").srcObject = stream;
      element("trial").hidden = false;
      element("trial").play().catch(() => {}); // it may end before it plays
    }
    this.show();
  }
}
