import { kept, keptInTab } from "./kept.js";
import { readVoice } from "./voice_file.js";
import { inTime, words } from "./words.js";

const element = (id) => document.getElementById(id);

/** What the user has chosen for conversations to come. Prompt and switches outlive the tab, the key does not, the voice not even a reload. */
export class Settings {
  #voice = null;
  #onOpen;
  #chosen = 0; // files so far: a slow one is not to replace a later one

  /** `onOpen` is called when the user looks at them. */
  constructor(onOpen) {
    this.#onOpen = onOpen;
    keep("system-prompt", "value", kept);
    keep("aloud", "checked", kept);
    keep("volume", "value", kept);
    keep("push-to-talk", "checked", kept);
    keep("key", "value", keptInTab);
    element("voice").addEventListener("change", () => this.#take(element("voice").files[0]));
    element("forget-voice").addEventListener("click", () => {
      element("voice").value = "";
      this.#take();
      element("voice").focus(); // the button goes
    });
    element("open-settings").addEventListener("click", () => this.open());
  }

  /** `run` is called with it now and whenever it changes. */
  onAloud(run) {
    element("aloud").addEventListener("change", () => run(this.aloud));
    run(this.aloud);
  }

  /** `run` is called whenever the volume was moved. */
  onVolume(run) {
    element("volume").addEventListener("input", () => run(this.volume));
  }

  /** 0 to 1. */
  get volume() {
    return +element("volume").value;
  }

  /** Whether the microphone is open only while a key or button is held. */
  get pushToTalk() {
    return element("push-to-talk").checked;
  }

  /** `field`: the id of the one that the user came for. */
  open(field) {
    element("settings").showModal();
    if (field) element(field).focus();
    this.#onOpen();
  }

  get prompt() {
    return element("system-prompt").value.trim();
  }

  get aloud() {
    return element("aloud").checked;
  }

  set aloud(value) {
    element("aloud").checked = value;
    element("aloud").dispatchEvent(new Event("change"));
  }

  get key() {
    return element("key").value.trim();
  }

  /** Base64 of the reference voice, or null for the server's own. */
  get voice() {
    return this.#voice;
  }

  async #take(file) {
    const number = ++this.#chosen;
    const read = file ? await readVoice(file).catch((fault) => ({ fault })) : {};
    if (number !== this.#chosen) return;
    if (read.fault) element("voice").value = "";
    this.#voice = read.base64 ?? null;
    element("forget-voice").hidden = !this.#voice;
    element("voice-state").textContent = read.fault?.message ?? (file ? words("settings.voice.ready", { time: inTime(read.seconds, "second", 1) }) : "");
  }
}

function keep(id, property, storage) {
  const field = element(id);
  const before = storage.get(id);
  if (before !== null) field[property] = JSON.parse(before);
  field.addEventListener("change", () => storage.set(id, JSON.stringify(field[property])));
}
