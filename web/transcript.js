import { inFileName, saveFile } from "./files.js";
import { atTime, onDate, words } from "./words.js";

/** Who said what and when, to keep. */
export class Transcript {
  #entries = [];

  /** A new entry, whose `text` may grow, and its place among the others: in the order of time. `who` is empty for what merely happened. */
  add(who, kind, text = "", at = new Date()) {
    const entry = { at, who, kind, text };
    const place = this.#entries.findLastIndex((other) => other.at <= at) + 1;
    this.#entries.splice(place, 0, entry);
    return { entry, place };
  }

  clear() {
    this.#entries = [];
  }

  /** As the browser can keep it: {at, who, kind, text}, `at` in ms since 1970. */
  get lines() {
    return this.#entries.map(({ at, ...line }) => ({ at: +at, ...line }));
  }

  get empty() {
    return this.#entries.length === 0;
  }

  toText() {
    const lines = this.#entries.map(({ at, who, text }) => `[${atTime(at)}] ${who ? words("line", { who, text }) : `(${text})`}`);
    return `${words("transcript.head", { time: onDate(new Date()) })}\n\n${lines.join("\n")}\n`;
  }

  save() {
    saveFile(new Blob([this.toText()], { type: "text/plain" }), `parley-${inFileName(new Date())}.txt`);
  }
}
