import { Transcript } from "./transcript.js";

const SHOWN = 220; // characters of the live caption

/** The transcript on the page, and the line of it that is spoken now. */
export class Captions {
  #list;
  #line;
  #transcript = new Transcript();
  #open = null; // what the model is saying: {response, entry, words}

  constructor(list, line) {
    this.#list = list;
    this.#line = line;
  }

  user(text, pictures = 0) {
    this.#open = null;
    this.#add("You", "user", pictures ? `${text} [${pictures} ${pictures === 1 ? "picture" : "pictures"}]` : text);
  }

  event(text) {
    this.#add("", "event", text);
  }

  begin() {
    this.#line.textContent = "";
    this.event("the conversation begins");
  }

  /** A piece of what the model says; pieces of one response stand together. */
  model(response, text) {
    if (!text) return;
    if (this.#open?.response !== response) this.#open = { response, ...this.#add("Parley", "model", "") };
    this.#open.entry.text += text;
    this.#open.words.textContent = this.#open.entry.text.trimStart();
    this.#line.textContent = this.#open.entry.text.slice(-SHOWN);
    this.#list.scrollTop = this.#list.scrollHeight;
  }

  /** The model was cut short. */
  broken() {
    this.#open?.words.parentElement.classList.add("broken");
    if (this.#open) this.#open.entry.text += " …";
    this.endTurn();
  }

  endTurn() {
    this.#open = null;
  }

  clear() {
    this.#transcript.clear();
    this.#list.replaceChildren();
    this.#line.textContent = "";
    this.#open = null;
  }

  save() {
    if (!this.#transcript.empty) this.#transcript.save();
  }

  #add(who, kind, text) {
    const entry = this.#transcript.add(who, text);
    const item = document.createElement("li");
    item.className = kind;
    const words = document.createElement("p");
    words.textContent = text;
    const time = document.createElement("time");
    time.textContent = entry.at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    item.append(words, time);
    this.#list.append(item);
    this.#list.scrollTop = this.#list.scrollHeight;
    return { entry, words };
  }
}
