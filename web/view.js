const element = (id) => document.getElementById(id);

const WORDS = {
  idle: "Ready when you are",
  connecting: "Connecting…",
  queued: "Waiting in line",
  starting: "Waking the model…",
  listening: "Listening",
  thinking: "Thinking…",
  speaking: "Speaking",
  reconnecting: "Reconnecting…",
  closing: "Saying goodbye…",
};

const RECORDED = "parley.recorded"; // whether this server recorded the last conversation

const START = { idle: "Start talking", queued: "Leave the line" };

function roughly(seconds) {
  if (seconds < 1) return "any moment";
  return seconds < 60 ? `about ${Math.ceil(seconds)} s` : `about ${Math.round(seconds / 60)} min`;
}

function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

/** What the page says of itself: the state of the conversation, the place in line, the clock and what went wrong. */
export class View {
  #began = 0;
  #muted = false;
  #link = null;

  constructor() {
    this.#showRecorded(localStorage.getItem(RECORDED) === "true");
  }

  #clock;

  get state() {
    return document.body.dataset.state;
  }

  set state(name) {
    if (this.state === name) return;
    document.body.dataset.state = name;
    this.#showState();
    element("chat-state").textContent = name === "idle" ? "" : WORDS[name];
    element("start").textContent = START[name] ?? "Stop";
    element("start").disabled = name === "closing";
    for (const radio of document.getElementsByName("mode")) radio.disabled = name !== "idle";
    if (name !== "queued") element("queue").hidden = true;
  }

  queued({ position, queue_length, estimated_wait_s }) {
    this.state = "queued";
    const place = position === 1 ? "You are next" : `Number ${position} of ${queue_length}`;
    element("queue").textContent = element("chat-state").textContent = `${place}: ${roughly(estimated_wait_s)}`;
    element("queue").hidden = false;
  }

  set muted(value) {
    this.#muted = value;
    document.body.dataset.muted = value;
    this.#showState();
  }

  /** Whether conversations are recorded: known from the server's answer, and until it has told from its last one. */
  set recorded(value) {
    localStorage.setItem(RECORDED, value);
    this.#showRecorded(value);
  }

  /** The running session's connection: true while it stands, false while it is lost, null without a session. */
  set link(up) {
    this.#link = up;
    if (up !== null) this.#showServer(up, up ? "connected" : "connection lost");
  }

  /** What the server says to who asks; a running session's own connection counts for more. */
  server({ ready, words, recording }) {
    if (recording !== undefined) this.recorded = recording;
    if (this.#link === null) this.#showServer(ready, words);
  }

  #showServer(ready, words) {
    element("server").dataset.ready = ready;
    element("server").textContent = words;
  }

  #showRecorded(value) {
    element("recorded").hidden = !value;
  }

  #showState() {
    const name = this.state;
    element("state").textContent = this.#muted && name === "listening" ? "Muted" : WORDS[name];
  }

  startClock() {
    this.#began = performance.now();
    const show = () => (element("clock").textContent = minutes((performance.now() - this.#began) / 1000));
    show();
    this.#clock = setInterval(show, 1000);
  }

  stopClock() {
    clearInterval(this.#clock);
    element("clock").textContent = "";
  }

  /** Words that stay until they are closed or the next ones come; none = nothing to say. */
  notice(words) {
    element("notice-words").textContent = words;
    element("notice").hidden = !words;
  }
}
