import { fromSamples } from "./base64.js";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/; // what a subprotocol may consist of
const MOST_UNSENT_BYTES = 512 * 1024; // about five seconds of sound
const MOST_WAITING = 60; // appends that wait for the server; limits.failover_units of them come through at once
const KEPT_AFTER_ANSWER = { chat: 1, audio: 60, video: 60 }; // appends: a server that died may have lost some that it had answered
const GOODBYE_MS = 3000;
const FIRST_RETRY_MS = 200;
const LONGEST_RETRY_MS = 4000;
const ATTEMPT_MS = 5000; // a connection that is not there after that never comes

/** The close code that follows an error: the session never existed. */
export const NO_PLACE = 1013;

/** How long to wait before attempt `number` (0, 1, …): twice as long each time, and never with everybody else. `chance` is 0 to 1. */
export function retryDelay(number, chance) {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** number) * (0.5 + chance / 2);
}

/**
 * One session on the server's /v1/realtime, in its current dialect. It outlives its connection as docs/protocol.md 14 says. `on` holds a
 * function for each thing that can come: queued(event), turn(), created(event), delta(event), done(event), heard(event), goAway(event), lost() and resumed()
 * around a break, error({code, message, type}) and, once and last, closed({reason, code, reached}); `reached` is false when there never was
 * a connection.
 */
export class Connection {
  #url;
  #subprotocols;
  #socket;
  #on;
  #reached = false;
  #reason = null;
  #leaving = false;
  #over = false;
  #appends = 0; // since session.created
  #arrived = 0; // of them, as the server says
  #kept = []; // {number, text}: appends that may have to be sent again
  #keptAfterAnswer;
  #resume = null; // {session, token, seconds, seen}: once the server promised it
  #break = null; // {code, until, attempt, timer, waking}: since the connection is lost

  /** `claim`, of a connection before, goes on with its session. */
  constructor(mode, key, on, claim = null) {
    this.#on = on;
    this.#keptAfterAnswer = KEPT_AFTER_ANSWER[mode];
    this.#url = new URL("v1/realtime", document.baseURI);
    this.#url.protocol = this.#url.protocol.replace("http", "ws");
    const hidden = key && TOKEN.test(key); // as a subprotocol a key stays out of logs of addresses
    if (key && !hidden) this.#url.searchParams.set("api_key", key);
    this.#subprotocols = hidden ? ["parley", `map-api-key.${key}`] : [];
    if (!claim) return this.#connect({ mode });
    const { session, token, seconds, seen } = claim;
    this.#resume = { session, token, seconds, seen };
    this.#appends = null; // as many as the server says
    this.#look(1006);
    this.#attempt();
  }

  /** What it takes to go on with the session elsewhere, {session, token, seconds, seen}; null where it cannot be. */
  get claim() {
    return this.#resume && { ...this.#resume };
  }

  /** The same as the address and subprotocols of a WebSocket that takes the session over. */
  get way() {
    return { url: this.#withQuery(this.#claimed).href, subprotocols: this.#subprotocols };
  }

  init(payload) {
    this.#send({ type: "session.init", payload: { ...payload, resume: true } });
  }

  /** One unit of sound; its input_id, or null when the network lags so far behind that the unit was left out. */
  append(samples, frames, force_listen) {
    if (this.#socket.bufferedAmount > MOST_UNSENT_BYTES || this.#appends - this.#arrived >= MOST_WAITING) return null;
    const input = { audio: fromSamples(samples) };
    if (frames.length) input.video_frames = frames;
    if (force_listen) input.force_listen = true;
    return this.#append(input);
  }

  /** One chat turn: its input_id. */
  ask(messages, options) {
    return this.#append({ messages, ...options });
  }

  /** For good; without a connection there is nobody to tell. */
  close() {
    this.#leaving = true;
    if (this.#break) return this.#end(this.#break.code);
    if (this.#socket.readyState !== WebSocket.OPEN) return this.#end(1000);
    this.#send({ type: "session.close", reason: "user_stop" });
    setTimeout(() => this.#socket.close(), GOODBYE_MS);
  }

  #connect(query) {
    const socket = new WebSocket(this.#withQuery(query), this.#subprotocols);
    this.#socket = socket;
    socket.onopen = () => (this.#reached = true);
    socket.onmessage = ({ data }) => socket === this.#socket && this.#take(JSON.parse(data));
    socket.onclose = ({ code }) => socket === this.#socket && this.#lose(code);
  }

  get #claimed() {
    const { session, token, seen } = this.#resume;
    return { session_id: session, resume_token: token, last_event_id: seen };
  }

  #withQuery(query) {
    const url = new URL(this.#url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  #append(input) {
    const number = ++this.#appends;
    const text = JSON.stringify({ type: "input.append", input });
    if (this.#resume) this.#kept.push({ number, text });
    if (!this.#break) this.#sendText(text);
    return `input_${number}`;
  }

  #send(event) {
    this.#sendText(JSON.stringify(event));
  }

  #sendText(text) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  #take(event) {
    if (this.#resume && event.event_id) this.#resume.seen = event.event_id;
    if (event.input_id) this.#answered(Number(event.input_id.replace("input_", "")));
    switch (event.type) {
      case "session.queued":
      case "session.queue_update": return this.#on.queued(event);
      case "session.queue_done": return this.#on.turn();
      case "session.created":
        this.#promise(event);
        return this.#on.created(event);
      case "session.resumed": return this.#goOn(event);
      case "response.output.delta": return this.#on.delta(event);
      case "input.transcript": return this.#on.heard?.(event);
      case "response.done": return this.#on.done?.(event);
      case "session.go_away": // before a restart of the server, only the break that follows is told
        return event.reason === "server_restart" ? undefined : this.#on.goAway(event);
      case "session.closed": return void (this.#reason = event.reason);
      case "error":
        if (event.error.code === "resume_refused") return void (this.#reason = "resume_refused");
        if (this.#break && event.error.code === "service_unavailable") return; // the server restarts: the next attempt follows
        return this.#on.error(event.error);
    }
  }

  #answered(number) {
    this.#arrived = Math.max(this.#arrived, number);
    while (this.#kept[0]?.number <= number - this.#keptAfterAnswer) this.#kept.shift();
  }

  #promise({ session_id, resume_token, resume_seconds, event_id }) {
    if (resume_token) this.#resume = { session: session_id, token: resume_token, seconds: resume_seconds, seen: event_id };
  }

  /** The connection is gone; the session may still be there. */
  #lose(code) {
    if (this.#leaving || this.#reason || !this.#resume) return this.#end(code);
    if (!this.#break) {
      this.#look(code);
      this.#on.lost?.();
    }
    const left = this.#break.until - performance.now();
    if (left <= 0) return this.#end(this.#break.code);
    clearTimeout(this.#break.timer);
    this.#break.timer = setTimeout(() => this.#attempt(), Math.min(left, retryDelay(this.#break.attempt++, Math.random())));
  }

  /** From now on another connection is looked for. */
  #look(code) {
    const waking = () => this.#attempt();
    this.#break = { code, until: performance.now() + this.#resume.seconds * 1000, attempt: 0, timer: 0, waking };
    window.addEventListener("online", waking);
  }

  #attempt() {
    clearTimeout(this.#break.timer);
    this.#socket?.close(); // of an attempt under way nothing is heard any more
    this.#connect(this.#claimed);
    this.#break.timer = setTimeout(() => {
      const tried = this.#socket;
      tried.onclose = null;
      tried.close();
      this.#lose(1006);
    }, ATTEMPT_MS);
  }

  #goOn({ resume_token, inputs }) {
    this.#mend();
    this.#resume.token = resume_token;
    this.#arrived = inputs;
    this.#appends ??= inputs;
    for (const { number, text } of this.#kept) if (number > inputs) this.#sendText(text);
    this.#on.resumed?.();
  }

  #mend() {
    if (!this.#break) return;
    clearTimeout(this.#break.timer);
    window.removeEventListener("online", this.#break.waking);
    this.#break = null;
  }

  #end(code) {
    if (this.#over) return;
    this.#over = true;
    this.#mend();
    this.#kept = [];
    const socket = this.#socket;
    this.#socket.onmessage = this.#socket.onclose = null;
    socket.close();
    this.#on.closed({ reason: this.#reason, code, reached: this.#reached });
  }
}
