import { readVoice } from "./voice_file.js";
import { inTime, words } from "./words.js";

const element = (id) => document.getElementById(id);

/** What the user has chosen for conversations to come. Prompt and switches outlive the tab, the key does not, the voice not even a reload. */
export class Settings {
  #voice = null;

  constructor() {
    keep("system-prompt", "value", localStorage);
    keep("aloud", "checked", localStorage);
    keep("key", "value", sessionStorage);
    element("voice").addEventListener("change", () => this.#take(element("voice").files[0]));
    element("open-settings").addEventListener("click", () => this.open());
  }

  /** `run` is called with it now and whenever it changes. */
  onAloud(run) {
    element("aloud").addEventListener("change", () => run(this.aloud));
    run(this.aloud);
  }

  open() {
    element("settings").showModal();
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
    this.#voice = null;
    let said = "";
    try {
      if (file) {
        const { base64, seconds } = await readVoice(file);
        this.#voice = base64;
        said = words("settings.voice.ready", { time: inTime(seconds, "second", 1) });
      }
    } catch (fault) {
      element("voice").value = "";
      said = fault.message;
    }
    element("voice-state").textContent = said;
  }
}

function keep(id, property, storage) {
  const field = element(id);
  const kept = storage.getItem(`parley.${id}`);
  if (kept !== null) field[property] = JSON.parse(kept);
  field.addEventListener("change", () => storage.setItem(`parley.${id}`, JSON.stringify(field[property])));
}
