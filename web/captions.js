import { toBytes } from "./base64.js";
import { rendered } from "./markdown.js";
import { Transcript } from "./transcript.js";
import { atTime, inNumbers, inTime, words } from "./words.js";

const SHOWN = 220; // characters of the live caption
const KINDS = ["user", "user unwritten", "model", "model broken", "event"];
const NEAR_END = 24; // pixels: who reads the newest goes on reading the newest

/** The transcript on the page, and the line of it that is spoken now. */
export class Captions {
  #list;
  #line;
  #transcript = new Transcript();
  #open = null; // what the model is saying: {response, entry, said}
  #urls = []; // of the pictures in the list
  #atEnd = true; // the newest is in sight

  #onChange;

  /** `onChange` is called when there is more to keep. */
  constructor(list, line, onChange = () => {}) {
    this.#list = list;
    this.#line = line;
    this.#onChange = onChange;
    let height = 0;
    list.addEventListener("scroll", () => {
      if (list.clientHeight === height) this.#atEnd = list.scrollHeight - list.scrollTop - height < NEAR_END; // else the list moved, not the user
    });
    new ResizeObserver(() => {
      height = list.clientHeight;
      this.#follow();
    }).observe(list);
  }

  /** `pictures` are base64 JPEGs. */
  user(text, pictures = []) {
    this.endTurn();
    this.#atEnd = true;
    const { entry, said } = this.#add(words("you"), "user", text);
    if (pictures.length === 0) return;
    entry.text += ` ${words("pictures.sent", { count: inNumbers(pictures.length) })}`;
    const row = document.createElement("div");
    row.className = "thumbs";
    row.append(...pictures.map((data) => this.#thumb(data)));
    said.before(row);
  }

  /** What the user said aloud, `seconds` long since `at`: as it was written down, or only that it was said. */
  heard(text, seconds, at) {
    if (text) this.#add(words("you"), "user", text, at);
    else this.#add("", "user unwritten", words("spoke", { time: inTime(seconds, "second", 1) }), at);
  }

  event(text) {
    this.#add("", "event", text);
  }

  /** The last words of a conversation. */
  ended(text) {
    this.endTurn();
    this.event(text);
  }

  /** A conversation begins, or goes on, as `said`. */
  begin(said) {
    this.#line.textContent = "";
    this.#line.classList.remove("broken");
    this.event(said);
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
    this.#onChange();
    this.#open.said = show(this.#open.said, this.#open.entry.text.trimStart());
    this.#line.append(text); // a screen reader reads what is new
    while (this.#line.textContent.length > SHOWN && this.#line.childNodes.length > 1) this.#line.firstChild.remove();
    this.#follow();
  }

  /** The model was cut short. */
  broken() {
    this.#line.classList.add("broken");
    this.#open?.said.parentElement.classList.add("broken");
    if (this.#open) {
      this.#open.entry.text += " …";
      this.#open.entry.kind = "model broken";
    }
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

  get lines() {
    return this.#transcript.lines;
  }

  /** Lines that were kept, in place of those here. */
  load(lines) {
    this.clear();
    for (const { at, who, kind, text } of lines) {
      const { said } = this.#add(String(who), KINDS.includes(kind) ? kind : "event", String(text), new Date(at));
      if (kind.startsWith("model")) show(said, String(text).trim());
    }
  }

  save() {
    if (!this.#transcript.empty) this.#transcript.save();
  }

  #follow() {
    if (this.#atEnd) this.#list.scrollTop = this.#list.scrollHeight;
  }

  #add(who, kind, text, at) {
    const { entry, place } = this.#transcript.add(who, kind, text, at);
    this.#onChange();
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
    this.#list.insertBefore(item, this.#list.children[place] ?? null);
    this.#follow();
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

/** Writes what the model said into its element, or into one in its place that has what the text asks for. */
function show(said, text) {
  const element = rendered(text);
  if (!element && said.tagName === "P") {
    said.textContent = text;
    return said;
  }
  const next = element ?? document.createElement("p");
  if (element) element.className = "rich";
  else next.textContent = text;
  said.replaceWith(next);
  return next;
}
