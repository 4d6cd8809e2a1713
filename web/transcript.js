import { atTime, onDate, words } from "./words.js";

/** Who said what and when, to keep. */
export class Transcript {
  #entries = [];

  /** A new entry, whose `text` may grow. `who` is empty for what merely happened. */
  add(who, text = "") {
    const entry = { at: new Date(), who, text };
    this.#entries.push(entry);
    return entry;
  }

  clear() {
    this.#entries = [];
  }

  get empty() {
    return this.#entries.length === 0;
  }

  toText() {
    const lines = this.#entries.map(({ at, who, text }) => `[${atTime(at)}] ${who ? words("line", { who, text }) : `(${text})`}`);
    return `${words("transcript.head", { time: onDate(new Date()) })}\n\n${lines.join("\n")}\n`;
  }

  save() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.toText()], { type: "text/plain" }));
    link.download = `parley-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.txt`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}
