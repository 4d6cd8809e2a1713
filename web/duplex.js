import { toSamples } from "./base64.js";
import { Camera } from "./camera.js";
import { Connection, NO_PLACE } from "./connection.js";
import { ConversationSound } from "./conversation_sound.js";
import { countCameras, keepAwake, openDevices, openMicrophone } from "./devices.js";
import { wordsForDevice, wordsForEnd, wordsForError, wordsForGoAway } from "./errors.js";
import { Microphone } from "./microphone.js";
import { Playback } from "./playback.js";
import { whatIsMissing, whyRefused } from "./server.js";
import { SoundClock } from "./sound_clock.js";
import { Units } from "./units.js";
import { inLength, words } from "./words.js";

const PLAYBACK_WATCH_MS = 100;

/**
 * One conversation by voice, with or without a camera: a second of sound out, a decision of the model back. Made when the user starts.
 * `devices` are the user's choice. `on` holds cameras(count), called when there is a picture and whenever the number changes, source(name), called when
 * the pictures come from the "camera", from the "screen", are "off" or "gone" for good, begun(sound) with
 * what will be heard, and over(), called last. `claim`, from before a reload, goes on with that conversation.
 */
export class Duplex {
  #mode;
  #settings;
  #devices;
  #page; // {view, captions, measures, orb, preview}
  #on;
  #over = false;
  #leaving = false; // the user wanted the end
  #told = false; // the user has seen what went wrong
  #awake; // keeps a phone's screen on
  #muted = false;
  #paused = false;
  #stream;
  #connection;
  #microphone;
  #camera;
  #playback;
  #clock;
  #claim; // of the conversation that this one goes on with, or null
  #sound = null;
  #began = null; // Date of the session's start
  #units = new Units((samples) => this.#send(samples, false));
  #queue = Promise.resolve(); // units leave in order, though pictures take their time
  #live = false; // the session takes input
  #away = false; // the connection is lost, and looked for
  #blind = false; // the server refused pictures
  #cutting = false; // interrupted: what still comes of that turn is not wanted
  #cutShown = false; // the timeline has this interruption already
  #turn = { open: false, ended: false };
  #spoke = false; // something came in this step that is not `listen`
  #ticker;

  constructor(mode, settings, devices, page, on, claim = null) {
    this.#claim = claim;
    this.#clock = new SoundClock(claim?.received);
    this.#mode = mode;
    this.#settings = settings;
    this.#devices = devices;
    this.#page = page;
    this.#on = on;
    page.view.state = "connecting";
    if (settings.aloud) {
      this.#playback = new Playback(() => this.#settle(), (samples) => this.#sound?.played(samples, performance.now()));
      this.#playback.volume = settings.volume;
      if (devices.speaker) this.#playback.speaker = devices.speaker;
    }
    this.#start();
  }

  async #start() {
    const facing = this.#mode === "video" ? "user" : null;
    const missing = await whatIsMissing(this.#settings.key);
    if (this.#over) return;
    if (missing) {
      this.#page.view.notice(missing.words, missing.key ? { words: words("settings"), run: () => this.#settings.open("key") } : null);
      return this.#end();
    }
    try {
      const stream = await openDevices(facing, this.#devices);
      this.#stream = stream;
      if (this.#over) return this.#release();
      if (facing) this.#look(stream, facing);
      const microphone = await Microphone.open(stream, (block) => this.#hear(block), () => this.#lostMicrophone());
      if (this.#over) return microphone.close();
      this.#microphone = microphone;
      this.#hush();
      this.#devices.list(); // their names may be known now
    } catch (fault) {
      this.#page.view.notice(wordsForDevice(fault));
      return this.#end();
    }
    this.#stayAwake();
    document.addEventListener("visibilitychange", this.#stayAwake);
    this.#page.view.startClock();
    this.#ticker = setInterval(() => this.#watchPlayback(), PLAYBACK_WATCH_MS);
    const wanted = (run) => (event) => this.#leaving || run(event);
    this.#connection = new Connection(this.#mode, this.#settings.key, {
      queued: wanted((event) => this.#page.view.queued(event)),
      turn: wanted(() => this.#init()),
      created: wanted((event) => this.#begin(event)),
      delta: wanted((event) => this.#take(event)),
      heard: wanted((event) => this.#heard(event)),
      lost: wanted(() => this.#lost()),
      resumed: wanted(() => this.#resumed()),
      goAway: wanted((event) => this.#page.view.notice(wordsForGoAway(event))),
      error: wanted((error) => this.#complain(error)),
      closed: (how) => this.#closed(how),
    }, this.#claim);
  }

  /** What it takes to go on after a reload of the page; null where it cannot be. */
  get claim() {
    const claim = this.#live ? this.#connection.claim : null;
    return claim && { ...claim, mode: this.#mode, received: this.#clock.received };
  }

  get way() {
    return this.#connection.way;
  }

  set muted(value) {
    this.#muted = value;
    this.#hush();
  }

  /** Nothing is sent and nothing heard until it goes on; the clocks of the session do (docs/protocol.md 6.8). */
  set paused(value) {
    this.#paused = value;
    this.#hush();
    if (this.#playback) this.#playback.paused = value;
  }

  set volume(value) {
    if (this.#playback) this.#playback.volume = value;
  }

  async flip() {
    await this.#camera?.flip();
  }

  async turnCamera(on) {
    await this.#camera?.turn(on);
  }

  async shareScreen() {
    await this.#camera?.share();
  }

  /** The user chose another "microphone", "speaker" or "camera". */
  async change(kind) {
    if (kind === "speaker" && this.#playback) this.#playback.speaker = this.#devices.speaker;
    if (kind === "camera") await this.#camera?.use(this.#devices.camera);
    if (kind !== "microphone" || !this.#microphone) return;
    try {
      const stream = await openMicrophone(this.#devices.microphone);
      if (this.#over) return stream.getTracks().forEach((track) => track.stop());
      this.#microphone.use(stream);
      for (const track of this.#stream.getAudioTracks()) {
        track.stop();
        this.#stream.removeTrack(track);
      }
      for (const track of stream.getAudioTracks()) this.#stream.addTrack(track);
    } catch (fault) {
      this.#page.view.notice(wordsForDevice(fault)); // the one before goes on
    }
  }

  #hush() {
    if (this.#microphone) this.#microphone.muted = this.#muted || this.#paused; // it may still be waited for
  }

  /** The model stops at once, here and on the server. */
  interrupt() {
    if (!this.#live || this.#cutting || !(this.#turn.open || this.#playback?.busy)) return;
    this.#cutting = this.#turn.open;
    this.#playback?.cut();
    this.#page.captions.broken();
    this.#page.captions.event(words("event.interrupted"));
    this.#send(this.#units.cut(), true);
    this.#show("listening");
  }

  stop() {
    if (!this.#connection) return this.#end();
    this.#live = false;
    this.#leaving = true;
    this.#page.view.state = "closing";
    this.#playback?.cut();
    this.#connection.close();
  }

  #init() {
    this.#page.view.state = "starting";
    const payload = { config: { generate_audio: this.#settings.aloud, transcribe_input: true } };
    if (this.#settings.prompt) payload.system_prompt = this.#settings.prompt;
    if (this.#settings.voice) payload.voice = { ref_audio_base64: this.#settings.voice };
    this.#connection.init(payload);
  }

  /** While the connection is looked for, that is the state. */
  #show(state) {
    this.#page.view.state = this.#away ? "reconnecting" : state;
  }

  #lost() {
    this.#away = true;
    this.#page.view.link = false;
    this.#show("reconnecting");
  }

  #resumed() {
    if (this.#claim && !this.#live) this.#takeUp(words("event.goes_on"));
    this.#away = false;
    this.#page.view.link = true;
    this.#show(this.#turn.open || this.#playback?.busy ? "speaking" : "listening");
  }

  #begin({ recording_id }) {
    this.#page.view.link = true;
    this.#page.view.state = "listening";
    this.#takeUp(words("event.begins"));
    this.#page.view.recorded = recording_id !== undefined;
    if (recording_id) this.#page.captions.event(words("event.recorded"));
  }

  #takeUp(said) {
    this.#live = true;
    this.#page.captions.begin(said);
    this.#began = new Date(); // after the line that says so
    this.#sound = new ConversationSound(performance.now());
    this.#on.begun(this.#sound);
  }

  #look(stream, facing) {
    this.#camera = new Camera(this.#page.preview, stream, facing, this.#devices.camera, {
      change: (source) => this.#on.source(source),
      lost: () => {
        this.#on.source("gone");
        this.#page.view.notice(words("device.camera_gone"));
      },
    });
    this.#tellCameras();
    navigator.mediaDevices.addEventListener("devicechange", this.#tellCameras);
  }

  #tellCameras = async () => {
    const count = await countCameras(); // browsers tell only one before they may be used
    if (!this.#over) this.#on.cameras(count);
  };

  #lostMicrophone() {
    if (this.#over || this.#leaving) return;
    this.#page.view.notice(words("device.microphone_gone"));
    this.stop();
  }

  /** Browsers let the screen go off again when the page was out of sight. */
  #stayAwake = () => {
    if (document.visibilityState === "visible") this.#awake = keepAwake();
  };

  #hear(block) {
    this.#devices.hear(block);
    if (this.#paused) return;
    if (!this.#playback?.busy) this.#page.orb.hear(block);
    if (!this.#live) return;
    this.#sound.heard(block, performance.now());
    this.#units.push(block);
  }

  #send(samples, force) {
    const heard = Date.now();
    const send = async () => {
      const picture = force || this.#blind ? null : await this.#camera?.picture();
      if (!this.#live) return;
      const input = this.#connection.append(samples, picture ? [picture] : [], force);
      if (input) this.#clock.sent(samples.length, heard);
      this.#page.measures.sent(input);
    };
    this.#queue = this.#queue.then(send, send);
  }

  /** A turn of the user, which may have been written down. Without words, and with nothing that kept it from being, it was a noise. */
  #heard({ text, start_ms, end_ms, problem }) {
    if (!text && !problem) return;
    const at = new Date(Math.max(this.#clock.at(start_ms), this.#began)); // the first second was gathered a little before it
    this.#page.captions.heard(text, (end_ms - start_ms) / 1000, at);
  }

  #take(event) {
    const cut = this.#cutting;
    if (event.kind === "listen") {
      this.#listen();
    } else if (!this.#cutting) {
      this.#speak(event);
    }
    const { metrics } = event;
    if (metrics?.wall_clock_ms === undefined) return;
    this.#page.measures.answered(event.input_id);
    this.#page.measures.completed(cut && !this.#cutShown ? "cut" : this.#spoke ? "speak" : "listen", metrics);
    this.#cutShown = this.#cutting;
    this.#spoke = false;
  }

  #speak(event) {
    this.#turn = { open: true, ended: event.end_of_turn === true };
    this.#spoke = true;
    this.#show("speaking");
    if (event.kind === "text") this.#page.captions.model(event.response_id, event.text);
    if (event.kind === "audio") this.#playback?.push(toSamples(event.audio));
  }

  /** A turn that ended by itself may be played out; of one that was cut nothing more is heard. */
  #listen() {
    if (this.#turn.open && !this.#turn.ended) this.#playback?.cut();
    this.#page.captions.endTurn();
    this.#turn = { open: false, ended: false };
    this.#cutting = false;
    this.#settle();
  }

  #settle() {
    if (this.#live && !this.#turn.open && !this.#playback?.busy) this.#show("listening");
  }

  #watchPlayback() {
    if (!this.#playback) return;
    if (this.#playback.busy) this.#page.orb.hear(this.#playback.wave);
    this.#page.measures.played(this.#playback.secondsPlayed);
  }

  #complain(error) {
    this.#told = true;
    if (this.#live && this.#camera && error.code === "invalid_payload") this.#blind = true;
    const said = wordsForError(error);
    this.#page.view.notice(this.#blind ? words("error.blind", { words: said }) : said);
    if (this.#page.view.state === "starting") this.stop(); // with other settings the user may try again
  }

  async #closed(how) {
    this.#end();
    if (this.#leaving || (this.#told && how.code === NO_PLACE)) return;
    const why = how.reached ? wordsForEnd(how) : await whyRefused(this.#settings.key);
    if (why) this.#page.view.notice(why);
  }

  #release() {
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
  }

  #end() {
    if (this.#over) return;
    this.#over = true;
    this.#live = false;
    clearInterval(this.#ticker);
    document.removeEventListener("visibilitychange", this.#stayAwake);
    navigator.mediaDevices?.removeEventListener("devicechange", this.#tellCameras);
    this.#awake?.then((lock) => lock?.release());
    this.#release();
    this.#microphone?.close();
    this.#camera?.close();
    this.#playback?.close();
    this.#page.view.stopClock();
    this.#page.view.link = null;
    this.#page.view.ended = this.#began !== null;
    this.#page.view.state = "idle";
    if (this.#began) this.#page.captions.ended(words("event.ends", { length: inLength((Date.now() - this.#began) / 1000) }));
    this.#on.over();
  }
}
