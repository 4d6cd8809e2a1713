import { readVoice } from "./voice_file.js";

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

  open() {
    element("settings").showModal();
  }

  get prompt() {
    return element("system-prompt").value.trim();
  }

  get aloud() {
    return element("aloud").checked;
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
    let words = "";
    try {
      if (file) {
        const { base64, seconds } = await readVoice(file);
        this.#voice = base64;
        words = `${seconds.toFixed(1)} s of voice are ready.`;
      }
    } catch (fault) {
      element("voice").value = "";
      words = fault.message;
    }
    element("voice-state").textContent = words;
  }
}

function keep(id, property, storage) {
  const field = element(id);
  const kept = storage.getItem(`parley.${id}`);
  if (kept !== null) field[property] = JSON.parse(kept);
  field.addEventListener("change", () => storage.setItem(`parley.${id}`, JSON.stringify(field[property])));
}
