import { toBytes } from "./base64.js";
import { Transcript } from "./transcript.js";
import { atTime, inNumbers, words } from "./words.js";

const SHOWN = 220; // characters of the live caption

/** The transcript on the page, and the line of it that is spoken now. */
export class Captions {
  #list;
  #line;
  #transcript = new Transcript();
  #open = null; // what the model is saying: {response, entry, said}
  #urls = []; // of the pictures in the list

  constructor(list, line) {
    this.#list = list;
    this.#line = line;
  }

  /** `pictures` are base64 JPEGs. */
  user(text, pictures = []) {
    this.endTurn();
    const { entry, said } = this.#add(words("you"), "user", text);
    if (pictures.length === 0) return;
    entry.text += ` ${words("pictures.sent", { count: inNumbers(pictures.length) })}`;
    const row = document.createElement("div");
    row.className = "thumbs";
    row.append(...pictures.map((data) => this.#thumb(data)));
    said.before(row);
  }

  event(text) {
    this.#add("", "event", text);
  }

  begin() {
    this.#line.textContent = "";
    this.#line.classList.remove("broken");
    this.event(words("event.begins"));
  }

  /** A piece of what the model says; pieces of one response stand together. */
  model(response, text) {
    if (!text) return;
    if (this.#open?.response !== response) {
      this.#open = { response, ...this.#add(words("model"), "model", "") };
      this.#line.textContent = "";
      this.#list.ariaBusy = true; // read out as a whole
    }
    this.#line.classList.remove("broken");
    this.#open.entry.text += text;
    this.#open.said.textContent = this.#open.entry.text.trimStart();
    this.#line.append(text); // a screen reader reads what is new
    while (this.#line.textContent.length > SHOWN && this.#line.childNodes.length > 1) this.#line.firstChild.remove();
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** The model was cut short. */
  broken() {
    this.#line.classList.add("broken");
    this.#open?.said.parentElement.classList.add("broken");
    if (this.#open) this.#open.entry.text += " …";
    this.endTurn();
  }

  endTurn() {
    this.#open = null;
    this.#list.ariaBusy = false;
  }

  clear() {
    this.#transcript.clear();
    this.#list.replaceChildren();
    for (const url of this.#urls.splice(0)) URL.revokeObjectURL(url);
    this.#line.textContent = "";
    this.endTurn();
  }

  save() {
    if (!this.#transcript.empty) this.#transcript.save();
  }

  #add(who, kind, text) {
    const entry = this.#transcript.add(who, text);
    const item = document.createElement("li");
    item.className = kind;
    if (who) {
      const speaker = document.createElement("span"); // the others see it by the side and the colour
      speaker.className = "unseen";
      speaker.textContent = words("line", { who, text: "" });
      item.append(speaker);
    }
    const said = document.createElement("p");
    said.textContent = text;
    const time = document.createElement("time");
    time.textContent = atTime(entry.at);
    item.tabIndex = -1; // a tap shows the time, as a mouse over it does
    item.append(said, time);
    this.#list.append(item);
    this.#list.scrollTop = this.#list.scrollHeight;
    return { entry, said };
  }

  #thumb(data) {
    const image = document.createElement("img");
    image.src = URL.createObjectURL(new Blob([toBytes(data)], { type: "image/jpeg" }));
    image.alt = words("picture.sent");
    this.#urls.push(image.src);
    return image;
  }
}
