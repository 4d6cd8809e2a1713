import { fromSamples } from "./base64.js";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/; // what a subprotocol may consist of
const MOST_UNSENT_BYTES = 512 * 1024; // about five seconds of sound
const GOODBYE_MS = 3000;

/** The close code that follows an error: the session never existed. */
export const NO_PLACE = 1013;

/**
 * One session on the server's /v1/realtime, in its current dialect. `on` holds a function for each thing that can come:
 * queued(event), turn(), created(event), delta(event), done(event), goAway(event), error({code, message, type}) and, once and last,
 * closed({reason, code, reached}); `reached` is false when there never was a connection.
 */
export class Connection {
  #socket;
  #on;
  #reached = false;
  #reason = null;
  #units = 0;

  constructor(mode, key, on) {
    this.#on = on;
    const url = new URL("v1/realtime", document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("mode", mode);
    const hidden = key && TOKEN.test(key); // as a subprotocol a key stays out of logs of addresses
    if (key && !hidden) url.searchParams.set("api_key", key);
    this.#socket = new WebSocket(url, hidden ? ["parley", `map-api-key.${key}`] : []);
    this.#socket.onopen = () => (this.#reached = true);
    this.#socket.onmessage = ({ data }) => this.#take(JSON.parse(data));
    this.#socket.onclose = ({ code }) => on.closed({ reason: this.#reason, code, reached: this.#reached });
  }

  init(payload) {
    this.#send({ type: "session.init", payload });
  }

  /** One unit of sound; its input_id, or null when the network lags so far behind that the unit was left out. */
  append(samples, frames, force_listen) {
    if (this.#socket.bufferedAmount > MOST_UNSENT_BYTES) return null;
    const input = { audio: fromSamples(samples) };
    if (frames.length) input.video_frames = frames;
    if (force_listen) input.force_listen = true;
    return this.#append(input);
  }

  /** One chat turn: its input_id. */
  ask(messages, options) {
    return this.#append({ messages, ...options });
  }

  close() {
    this.#send({ type: "session.close", reason: "user_stop" });
    setTimeout(() => this.#socket.close(), GOODBYE_MS);
  }

  #append(input) {
    this.#send({ type: "input.append", input });
    return `input_${++this.#units}`;
  }

  #send(event) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event));
  }

  #take(event) {
    switch (event.type) {
      case "session.queued":
      case "session.queue_update": return this.#on.queued(event);
      case "session.queue_done": return this.#on.turn();
      case "session.created": return this.#on.created(event);
      case "response.output.delta": return this.#on.delta(event);
      case "response.done": return this.#on.done?.(event);
      case "session.go_away": return this.#on.goAway(event);
      case "session.closed": return void (this.#reason = event.reason);
      case "error": return this.#on.error(event.error);
    }
  }
}
