import { Earlier } from "./earlier.js";
import { onDate, words } from "./words.js";

const QUIET_MS = 1000; // what is said word by word is not stored word by word
const LONGEST_TITLE = 60; // characters
const element = (id) => document.getElementById(id);

/** The folded list of earlier conversations, and the present one, which it keeps. */
export class EarlierList {
  #earlier = new Earlier();
  #present;
  #onOpen;
  #id;
  #timer = 0;

  /** `present()` gives {mode, lines} of what is on the page, `onOpen(conversation)` gets the one that the user wants to see. */
  constructor(present, onOpen) {
    this.#present = present;
    this.#onOpen = onOpen;
    this.begin();
    element("earlier").addEventListener("toggle", () => this.show());
    element("forget").addEventListener("click", () => {
      this.#earlier.forget();
      this.show();
    });
  }

  /** Of the present conversation. */
  get id() {
    return this.#id;
  }

  /** From now on there is another conversation on the page. */
  begin() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#id = crypto.getRandomValues(new Uint32Array(2)).join("-");
    this.show();
  }

  changed() {
    this.#timer ||= setTimeout(() => this.keep(), QUIET_MS);
  }

  keep() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const { mode, lines } = this.#present();
    if (lines.some(({ kind }) => kind !== "event")) this.#earlier.keep({ id: this.#id, mode, lines });
  }

  open(id) {
    if (this.#timer) this.keep();
    const conversation = this.#earlier.find(id);
    if (!conversation) return;
    this.#onOpen(conversation);
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#id = id; // what follows belongs to it
  }

  /** In the present language; the list itself only while it is unfolded. */
  show() {
    const all = this.#earlier.all();
    element("earlier").hidden = all.length === 0;
    element("conversations").replaceChildren(...(element("earlier").open ? all.map((one) => this.#item(one)) : []));
  }

  #item({ id, mode, lines }) {
    const button = document.createElement("button");
    button.type = "button";
    const first = (...kinds) => lines.find((line) => kinds.includes(line.kind) && line.text.trim());
    const said = first("user") ?? first("model", "model broken") ?? lines.find(({ kind }) => kind !== "event") ?? lines[0];
    const text = String(said.text).trim();
    button.textContent = text.length > LONGEST_TITLE ? `${text.slice(0, LONGEST_TITLE).trimEnd()}…` : text;
    const when = document.createElement("small");
    when.textContent = words("earlier.when", { time: onDate(new Date(lines[0].at)), mode: words(`mode.${mode}`) });
    button.append(when);
    button.addEventListener("click", () => this.open(id));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }
}
