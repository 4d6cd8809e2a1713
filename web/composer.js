import { composes } from "./keys.js";
import { toJpeg } from "./pictures.js";
import { words } from "./words.js";

const LONGEST = 1344; // three tiles of the model's eye
const element = (id) => document.getElementById(id);

/** The field for a message and its pictures. `onMessage(text, pictures)` gets what was sent, unless `mayNot()`; `onFault(text)` tells what could not be used. */
export class Composer {
  #pictures = []; // {data, chip}
  #onFault;

  constructor(mayNot, onMessage, onFault) {
    this.#onFault = onFault;
    const text = element("prompt");
    element("picture").addEventListener("change", () => this.#attach(element("picture")));
    text.addEventListener("input", () => this.#fit(text));
    text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || composes(event)) return;
      event.preventDefault();
      element("composer").requestSubmit();
    });
    element("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      const said = text.value.trim();
      if (mayNot() || !said) return;
      onMessage(said, this.#pictures.map(({ data }) => data));
      text.value = "";
      this.#fit(text);
      this.#pictures = [];
      element("pictures").replaceChildren();
      if (document.activeElement.matches(":focus-visible")) text.focus(); // the button goes while the answer comes
    });
  }

  #fit(text) {
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight + text.offsetHeight - text.clientHeight}px`;
  }

  async #attach(input) {
    const files = [...input.files];
    input.value = ""; // the same one may be chosen again
    const unread = [];
    for (const file of files) {
      const data = await createImageBitmap(file)
        .then((image) => toJpeg(image, image.width, image.height, LONGEST))
        .catch(() => null);
      if (data) this.#add(data, file);
      else unread.push(file.name);
    }
    if (unread.length) this.#onFault(words("composer.unread", { names: unread.join(", ") }));
  }

  #add(data, file) {
    const chip = document.createElement("li");
    const image = document.createElement("img");
    image.src = URL.createObjectURL(file);
    image.alt = file.name;
    image.onload = () => URL.revokeObjectURL(image.src);
    const remove = document.createElement("button");
    remove.type = "button";
    remove.textContent = "✕";
    remove.setAttribute("aria-label", words("composer.remove", { name: file.name }));
    const picture = { data, chip };
    remove.onclick = () => {
      this.#pictures = this.#pictures.filter((other) => other !== picture);
      chip.remove();
    };
    chip.append(image, remove);
    element("pictures").append(chip);
    this.#pictures.push(picture);
  }
}
