import { kept } from "./kept.js";
import { inLength, inNumbers, inTime, words, wordsOf } from "./words.js";

const element = (id) => document.getElementById(id);
const RECORDED = "recorded"; // whether this server recorded the last conversation

function roughly(seconds) {
  if (seconds < 1) return words("queue.moment");
  return words("queue.about", { time: seconds < 60 ? inTime(Math.ceil(seconds), "second") : inTime(Math.round(seconds / 60), "minute") });
}

/** A screen reader reads again what is written again. */
function write(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

/** What the page says of itself: the state of the conversation, the place in line, the clock and what went wrong. */
export class View {
  #began = 0;
  #muted = false;
  #paused = false;
  #ended = false; // a conversation was here
  #link = null;
  #clock;
  #place = null; // in line, while there

  #onUnlinked;

  /** `onUnlinked` is called when there is no session's connection any more, so that the server has to be asked again how it is. */
  constructor(onUnlinked) {
    this.#onUnlinked = onUnlinked;
    this.#showRecorded(kept.get(RECORDED) === "true");
  }

  get state() {
    return document.body.dataset.state;
  }

  set state(name) {
    if (this.state === name) return;
    document.body.dataset.state = name;
    if (name !== "queued") this.#place = null;
    if (name !== "idle") this.#ended = false;
    this.show();
  }

  /** Whether the page is idle because a conversation is over. */
  set ended(value) {
    this.#ended = value;
    this.show();
  }

  queued(event) {
    this.#place = event;
    this.state = "queued";
    this.show();
  }

  set muted(value) {
    this.#muted = value;
    document.body.dataset.muted = value;
    this.show();
  }

  set paused(value) {
    this.#paused = value;
    document.body.dataset.paused = value;
    this.show();
  }

  /** Whether conversations are recorded: known from the server's answer, and until it has told from its last one. */
  set recorded(value) {
    kept.set(RECORDED, value);
    this.#showRecorded(value);
  }

  /** The running session's connection: true while it stands, false while it is lost, null without a session. */
  set link(up) {
    const had = this.#link !== null;
    this.#link = up;
    if (up === null && had) this.#onUnlinked();
    this.#showLink();
  }

  /** Whether a running session's connection tells how the server is. */
  get linked() {
    return this.#link !== null;
  }

  /** What the server says to who asks; a running session's own connection counts for more. */
  server({ ready, words: said, recording }) {
    if (recording !== undefined) this.recorded = recording;
    if (this.#link === null) this.#showServer(ready, said);
  }

  startClock() {
    this.#began = performance.now();
    const show = () => (element("clock").textContent = inLength((performance.now() - this.#began) / 1000));
    show();
    this.#clock = setInterval(show, 1000);
  }

  stopClock() {
    clearInterval(this.#clock);
    element("clock").textContent = "";
  }

  /** Words that stay until they are closed or the next ones come; none = nothing to say. `action` is {words, run}: a button beside them. */
  notice(said, action = null) {
    element("notice-words").textContent = said;
    element("notice").hidden = !said;
    element("notice-action").hidden = !action;
    element("notice-action").textContent = action?.words ?? "";
    element("notice-action").onclick = action?.run ?? null;
  }

  /** Everything in the present language. */
  show() {
    const name = this.state;
    const idle = name === "idle";
    write("state", words(`state.${this.#felt}`));
    write("recorded-words", words(["listening", "speaking", "reconnecting"].includes(name) ? "recorded.now" : "recorded"));
    write("queue", this.#place ? this.#inLine() : "");
    element("queue").hidden = !this.#place;
    write("chat-state", this.#place ? this.#inLine() : idle ? "" : words(`state.${name}`));
    element("start").textContent = idle ? words("start") : words(name === "queued" ? "start.leave" : "start.stop");
    element("start").disabled = name === "closing";
    for (const radio of document.getElementsByName("mode")) {
      radio.disabled = !idle;
      radio.title = radio.parentElement.title = idle || radio.checked ? "" : words("mode.locked");
    }
    element("mute").title = words(this.#muted ? "mute.off" : "mute.on");
    element("pause").title = words(this.#paused ? "pause.off" : "pause.on");
    this.#showLink();
  }

  /** The state as it is for the user. */
  get #felt() {
    const name = this.state;
    if (name === "idle" && this.#ended) return "ended";
    if (this.#paused && ["listening", "speaking"].includes(name)) return "paused";
    if (this.#muted && name === "listening") return document.body.dataset.hold === "true" ? "hold" : "muted";
    return name;
  }

  #inLine() {
    const { position, queue_length, estimated_wait_s } = this.#place;
    const wait = roughly(estimated_wait_s);
    return position === 1 ? words("queue.next", { wait }) : words("queue.place", { position: inNumbers(position), length: inNumbers(queue_length), wait });
  }

  #showLink() {
    if (this.#link !== null) this.#showServer(this.#link, wordsOf("server", this.#link ? "connected" : "lost"));
  }

  #showServer(ready, said) {
    element("server").dataset.ready = ready;
    write("server", said);
  }

  #showRecorded(value) {
    element("recorded").hidden = !value;
  }
}
