import { kept } from "./kept.js";

const KEPT = "conversations";
const MOST = 10; // conversations
const MOST_LINES = 300; // of each, the newest
const MOST_LETTERS = 4000; // of a line

/** The last conversations in words, which this browser keeps: {id, mode, lines: [{at, who, kind, text}]}, the newest first. */
export class Earlier {
  all() {
    try {
      const found = JSON.parse(kept.get(KEPT) ?? "[]");
      return Array.isArray(found) ? found.filter(({ id, lines }) => id && Array.isArray(lines)) : [];
    } catch {
      return []; // somebody else's
    }
  }

  find(id) {
    return this.all().find((one) => one.id === id) ?? null;
  }

  /** Instead of what was kept under its id. */
  keep({ id, mode, lines }) {
    const short = lines.slice(-MOST_LINES).map((line) => ({ ...line, text: line.text.slice(0, MOST_LETTERS) }));
    const others = this.all().filter((one) => one.id !== id);
    kept.set(KEPT, JSON.stringify([{ id, mode, lines: short }, ...others].slice(0, MOST)));
  }

  forget() {
    kept.set(KEPT, "[]");
  }
}
