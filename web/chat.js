import { toSamples } from "./base64.js";
import { Connection, NO_PLACE } from "./connection.js";
import { wordsForEnd, wordsForError, wordsForGoAway } from "./errors.js";
import { Playback } from "./playback.js";
import { whyRefused } from "./server.js";
import { words } from "./words.js";

const MOST_MESSAGES = 255; // the protocol's 256, and one for the system prompt
const MOST_NEW_TOKENS = 1024;

/**
 * A conversation in writing. The server keeps nothing between turns, so the connection is made when there is something to say and may go
 * in between.
 */
export class Chat {
  #settings;
  #page; // {view, captions, measures}
  #messages = [];
  #connection = null;
  #ready = false; // the session takes turns
  #asking = null; // the turn under way: {input, answer, felt}
  #away = false; // the connection is lost, and looked for
  #told = false;
  #playback = null;
  #ticker;

  constructor(settings, page) {
    this.#settings = settings;
    this.#page = page;
  }

  get busy() {
    return this.#asking !== null;
  }

  /** `pictures` are base64 JPEGs. Made in answer to a click or key, so that sound may follow. */
  ask(text, pictures) {
    const content = pictures.length ? [...pictures.map((data) => ({ type: "image", data })), { type: "text", text }] : text;
    this.#messages.push({ role: "user", content });
    while (this.#messages.length > MOST_MESSAGES) this.#messages.splice(0, 2);
    this.#page.captions.user(text, pictures);
    this.#asking = { input: null, answer: "", felt: false };
    if (this.#settings.aloud) this.#playback ??= this.#openPlayback();
    if (this.#ready) return this.#send();
    this.#page.view.state = "connecting";
    if (!this.#connection) this.#connect();
  }

  /** The answer under way is enough, or what is heard of it. */
  stop() {
    if (this.#quiet) return;
    this.#playback?.cut();
    if (this.#asking) {
      this.#page.captions.broken();
      this.#conclude();
      this.#letGo();
    }
    this.#settle();
  }

  /** What is still to be heard of an answer is not wanted. */
  silence() {
    if (this.#quiet) return;
    this.#playback?.cut();
    this.#settle();
  }

  set volume(value) {
    if (this.#playback) this.#playback.volume = value;
  }

  /** What was said before, as lines of a transcript: the next turn goes on from there. */
  remember(lines) {
    this.#messages = [];
    const roles = { user: "user", model: "assistant", "model broken": "assistant" };
    for (const { kind, text } of lines) {
      const role = roles[kind];
      if (!role || !text.trim()) continue;
      if (role === (this.#messages.at(-1)?.role ?? "assistant")) this.#messages.pop(); // a question that was not answered
      if (role === "user" || this.#messages.length) this.#messages.push({ role, content: text });
    }
    if (this.#messages.at(-1)?.role === "user") this.#messages.pop();
  }

  /** Nothing of what was said holds any more. */
  forget() {
    this.#messages = [];
  }

  /** The page turns to something else. */
  leave() {
    this.#letGo();
    this.#playback?.close();
    this.#playback = null;
    clearInterval(this.#ticker);
  }

  #connect() {
    this.#told = false;
    const still = (run) => (event) => this.#connection === connection && run(event);
    const connection = new Connection("chat", this.#settings.key, {
      queued: still((event) => this.#page.view.queued(event)),
      turn: still(() => connection.init(this.#settings.prompt ? { system_prompt: this.#settings.prompt } : {})),
      created: still((event) => this.#begin(event)),
      delta: still((event) => this.#take(event)),
      done: still((event) => this.#finish(event)),
      lost: still(() => this.#lost()),
      resumed: still(() => this.#resumed()),
      goAway: still((event) => this.#asking && this.#page.view.notice(wordsForGoAway(event))),
      error: still((error) => this.#complain(error)),
      closed: still((how) => this.#closed(how)),
    });
    this.#connection = connection;
  }

  /** The connection may end by itself; what still comes from it is not heard. */
  #letGo() {
    const connection = this.#connection;
    this.#connection = null; // before what closing it may say
    connection?.close();
    this.#gone();
  }

  #gone() {
    this.#ready = false;
    this.#away = false;
    this.#page.view.link = null;
  }

  #lost() {
    this.#away = true;
    this.#page.view.link = false;
    if (this.#asking) this.#page.view.state = "reconnecting";
  }

  #resumed() {
    this.#away = false;
    this.#page.view.link = true;
    if (this.#asking) this.#page.view.state = this.#asking.felt ? "speaking" : "thinking";
  }

  #begin({ recording_id }) {
    this.#ready = true;
    this.#page.view.link = true;
    this.#page.view.recorded = recording_id !== undefined;
    if (recording_id) this.#page.captions.event(words("event.recorded"));
    if (this.#asking) this.#send();
  }

  #send() {
    this.#page.view.state = this.#away ? "reconnecting" : "thinking";
    const options = { generation: { max_new_tokens: MOST_NEW_TOKENS } };
    if (this.#settings.aloud) {
      options.tts = { enabled: true };
      if (this.#settings.voice) options.tts.ref_audio_data = this.#settings.voice;
    }
    this.#asking.input = this.#connection.ask(this.#messages, options);
    this.#page.measures.sent(this.#asking.input);
  }

  #take(event) {
    if (!this.#asking) return;
    if (!this.#asking.felt) this.#page.measures.answered(event.input_id);
    this.#asking.felt = true;
    this.#page.view.state = "speaking";
    if (event.kind === "audio") return this.#playback?.push(toSamples(event.audio));
    this.#asking.answer += event.text;
    this.#page.captions.model(event.response_id, event.text);
  }

  #finish({ metrics }) {
    if (!this.#asking) return;
    this.#page.measures.completed(null, metrics);
    this.#page.captions.endTurn();
    this.#conclude();
    this.#settle();
  }

  #complain(error) {
    this.#told = true;
    this.#page.view.notice(wordsForError(error));
    if (!this.#asking) return;
    this.#page.captions.broken();
    this.#forgetTurn();
    if (!this.#ready) this.#letGo();
    this.#settle();
  }

  async #closed(how) {
    this.#connection = null;
    this.#gone();
    const expected = !this.#asking && how.reason; // between turns the server may let go of us
    if (this.#asking) this.#page.captions.broken();
    this.#forgetTurn();
    this.#settle();
    if (expected || (this.#told && how.code === NO_PLACE)) return;
    const why = how.reached ? wordsForEnd(how) : await whyRefused(this.#settings.key);
    if (why) this.#page.view.notice(why);
  }

  /** The turn with as much of an answer as there is. */
  #conclude() {
    const { answer } = this.#asking;
    if (!answer) return this.#forgetTurn();
    this.#messages.push({ role: "assistant", content: answer });
    this.#asking = null;
  }

  /** A turn that failed is not said again with the next one. */
  #forgetTurn() {
    if (this.#asking) this.#messages.pop();
    this.#asking = null;
  }

  #openPlayback() {
    const playback = new Playback(() => this.#settle());
    playback.volume = this.#settings.volume;
    this.#ticker = setInterval(() => this.#page.measures.played(playback.secondsPlayed), 200);
    return playback;
  }

  /** Nothing is asked, and nothing heard: the page's state is somebody else's. */
  get #quiet() {
    return !this.#asking && !this.#playback?.busy;
  }

  #settle() {
    if (this.#quiet) this.#page.view.state = "idle";
  }
}
