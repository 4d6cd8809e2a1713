import { LineChart, Timeline } from "./charts.js";
import { inNumbers, inTime, words } from "./words.js";

const CONTEXT_TOKENS = 8192;
const UNIT_MS = 1000;

const element = (id) => document.getElementById(id);

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

/** The figures beside the conversation. Latency is what the user feels: from an input's departure to the end (in chat: the first piece) of its answer. */
export class Measures {
  #latency = new LineChart(element("latency"), element("latency-now"), (all) => words("details.latency.now", { time: inTime(Math.round(median(all)), "millisecond") }), {
    limit: UNIT_MS,
    whole: false,
    stroke: "accent",
  });
  #memory = new LineChart(element("memory"), element("memory-now"), (all) => words("details.context.now", { used: inNumbers(all.at(-1)), all: inNumbers(CONTEXT_TOKENS) }), {
    limit: CONTEXT_TOKENS,
    whole: true,
    stroke: "speak",
  });
  #timeline = new Timeline(element("timeline"), element("timeline-now"), (all) =>
    words("details.timeline.now", { spoken: inTime(all.filter((kind) => kind === "speak").length, "second"), all: inTime(all.length, "second") }),
  );
  #left = new Map(); // input_id -> when it left
  #counts = {};

  constructor() {
    this.clear();
  }

  clear() {
    this.#latency.clear();
    this.#memory.clear();
    this.#timeline.clear();
    this.#left.clear();
    this.#counts = { sent: 0, answered: 0, skipped: 0, dropped: 0 };
    this.#write();
    this.played(0);
  }

  /** `input` null: it was left out. */
  sent(input) {
    if (input) this.#left.set(input, performance.now());
    this.#counts[input ? "sent" : "skipped"]++;
    this.#write();
  }

  /** The first piece of an answer that is felt as such. Those of older inputs come no more. */
  answered(input) {
    const left = this.#left.get(input);
    if (left === undefined) return;
    this.#latency.push(performance.now() - left);
    for (const older of this.#left.keys()) {
      this.#left.delete(older);
      if (older === input) break;
    }
  }

  /** The whole answer; `kind` for the timeline, null where there is none. */
  completed(kind, { kv_cache_length, dropped_chunks } = {}) {
    this.#counts.answered++;
    if (dropped_chunks !== undefined) this.#counts.dropped = dropped_chunks;
    if (kind) this.#timeline.push(kind);
    if (kv_cache_length !== undefined) this.#memory.push(kv_cache_length);
    this.#write();
  }

  played(seconds) {
    element("played").textContent = inNumbers(seconds, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  }

  redraw() {
    this.#write();
    for (const chart of [this.#latency, this.#memory, this.#timeline]) chart.show();
  }

  #write() {
    const { sent, answered, skipped, dropped } = this.#counts;
    for (const [id, count] of Object.entries({ sent, answered, dropped: skipped + dropped })) {
      element(id).textContent = inNumbers(count);
      element(id).parentElement.querySelector(".in-chat").textContent = words(count === 1 ? "unit.message" : "unit.messages");
    }
  }
}
