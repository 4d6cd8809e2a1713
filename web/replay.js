import { saveFile } from "./files.js";
import { keptInTab } from "./kept.js";
import { onKeys } from "./keys.js";
import { ReplayPlayer } from "./replay_player.js";
import { asHeard, layOut, titleOf } from "./replay_timeline.js";
import { toStereoWav } from "./stereo.js";
import { followTheme } from "./theme.js";
import { readWav } from "./wav.js";
import { followLanguage, inLength, inTime, onDate, words, wordsOf } from "./words.js";

const element = (id) => document.getElementById(id);
const OVER = ["closed", "failed", "cut"];
const NARROW = matchMedia("(max-width: 760px)"); // as in replay.css

let open = null; // {id, facts, laid, tracks, player, pictures}
let asked = 0;
let frame = 0; // the one that is asked for
let recorded = [];
const titles = new Map(); // of recordings whose events were read

/** What the server would not do, in words for people. */
class Refused extends Error {}

/** An answer of the server; a key that was entered on the page goes along. */
async function ask(path, options = {}) {
  const key = JSON.parse(keptInTab.get("key") ?? '""');
  const answer = await fetch(path, { cache: "no-store", ...options, headers: key ? { Authorization: `Bearer ${key}` } : {} }).catch(() => {
    throw new Refused(words("missing.server", { host: location.host }));
  });
  if (!answer.ok) throw new Refused(wordsOf("http", answer.status, words("http.other", { status: answer.status })));
  return answer;
}

const fileOf = (id, name) => ask(`sessions/${encodeURIComponent(id)}/${name}`);

function guarded(action) {
  return async (...given) => {
    try {
      notice("");
      await action(...given);
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      notice(fault.message);
    }
  };
}

function notice(said) {
  element("notice-words").textContent = said;
  element("notice").hidden = !said;
}

async function eventsOf(id) {
  const text = await (await fileOf(id, "events.jsonl")).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

const endOf = ({ reason, state }) => wordsOf("end", reason, wordsOf("end", state, reason || state));

/** The first words spoken, read when the recording comes into view. */
const seen = new IntersectionObserver(async (changes) => {
  for (const { isIntersecting, target } of changes) {
    const { id } = target.dataset;
    if (!isIntersecting || titles.has(id)) continue;
    titles.set(id, words("replay.unread"));
    try {
      titles.set(id, titleOf(layOut(await eventsOf(id)).lines));
    } catch {
      continue; // its time says enough
    }
    showTitle(target);
  }
});

function showTitle(button) {
  button.firstChild.textContent = (titles.get(button.dataset.id) ?? words("replay.unread")) || words("replay.silent");
}

const list = guarded(async () => {
  const { sessions } = await (await ask("sessions")).json();
  recorded = sessions.filter(({ state }) => OVER.includes(state));
  showList();
});

function showList() {
  seen.disconnect();
  element("none").hidden = recorded.length > 0;
  element("recordings").replaceChildren(
    ...recorded.map((facts) => {
      const button = document.createElement("button");
      button.type = "button";
      const time = onDate(new Date(facts.started_ms));
      button.dataset.id = facts.session_id;
      const more = document.createElement("small");
      more.textContent = words("replay.facts", { time, mode: words(`mode.${facts.mode}`), length: inLength(facts.seconds), end: endOf(facts) });
      button.append(document.createElement("span"), more);
      button.setAttribute("aria-current", open?.id === facts.session_id);
      showTitle(button);
      seen.observe(button);
      button.addEventListener("click", () => show(facts));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
}

const show = guarded(async (facts) => {
  const id = facts.session_id;
  const number = ++asked;
  close();
  const [events, input, output] = await Promise.all([
    eventsOf(id),
    fileOf(id, "input.wav").then((answer) => answer.arrayBuffer()),
    fileOf(id, "output.wav").then((answer) => answer.arrayBuffer()),
  ]);
  if (number !== asked) return;
  const sounds = [readWav(input), readWav(output)];
  const laid = layOut(events, { "input.wav": sounds[0].samples.length, "output.wav": sounds[1].samples.length });
  const tracks = [asHeard(sounds[0], laid.input, laid.seconds), asHeard(sounds[1], laid.output, laid.seconds)];
  open = { id, facts, laid, tracks, player: new ReplayPlayer(tracks, laid.seconds, paint), pictures: new Map() };
  for (const button of element("recordings").querySelectorAll("button")) button.setAttribute("aria-current", button.dataset.id === id);
  element("position").max = laid.seconds;
  showOpen();
  element("player").hidden = false;
  element("player").scrollIntoView({ block: "nearest" });
  paint();
});

/** The words about the open recording. */
function showOpen() {
  const { id, facts, laid } = open;
  element("title").textContent = titleOf(laid.lines) || words("replay.silent");
  element("facts").textContent = words("replay.title", { time: onDate(new Date(facts.started_ms)), mode: words(`mode.${facts.mode}`), id });
  element("lines").replaceChildren(...laid.lines.map(lineItem));
}

function close() {
  open?.player.close();
  for (const url of open?.pictures.values() ?? []) URL.revokeObjectURL(url);
  open = null;
  element("player").hidden = true;
  element("picture").hidden = true;
  element("picture").removeAttribute("data-file");
}

const SAID = {
  user: ({ text, spoke }) => (spoke ? words("spoke", { time: inTime(spoke, "second", 1) }) : words("line", { who: words("you"), text: text.trim() })),
  model: ({ text }) => words("line", { who: words("model"), text: text.trim() }),
  end: ({ text: reason }) => words("replay.ends", { end: wordsOf("end", reason, reason) }),
};

function lineItem(line) {
  const { start, who, pictures } = line;
  const item = document.createElement("li");
  item.dataset.start = start;
  const time = document.createElement("button"); // the keyboard's way to it; the whole line is the mouse's
  time.type = "button";
  time.className = "at";
  time.textContent = inLength(start);
  item.addEventListener("click", () => seek(start));
  const said = document.createElement("div");
  said.textContent = SAID[who](line);
  item.append(time, said);
  if (pictures.length) said.append(thumbs(pictures));
  return item;
}

function thumbs(files) {
  const row = document.createElement("div");
  row.className = "thumbs";
  const of = open;
  for (const file of files) {
    const image = document.createElement("img");
    image.alt = words("picture.sent");
    row.append(image);
    pictureOf(of, file).then((url) => (image.src = url), () => image.remove());
  }
  return row;
}

/** A URL of a recording's picture, for as long as the recording is open. */
async function pictureOf(of, file) {
  if (!of.pictures.has(file)) of.pictures.set(file, URL.createObjectURL(await (await fileOf(of.id, file)).blob()));
  return of.pictures.get(file);
}

/** Shows where the replay is; goes on by itself while it plays. */
function paint() {
  if (!open) return;
  const { player, laid } = open;
  const now = player.position;
  element("play").textContent = words(player.playing ? "replay.pause" : "replay.play");
  document.body.dataset.state = player.playing ? "playing" : "idle";
  element("position").value = now;
  element("position").ariaValueText = element("now").textContent = words("replay.now", { now: inLength(now), all: inLength(laid.seconds) });
  for (const item of element("lines").children) item.classList.toggle("said", +item.dataset.start <= now);
  drawWaves(now);
  showPicture(laid.pictures.findLast(({ start }) => start <= now));
  cancelAnimationFrame(frame);
  if (player.playing) frame = requestAnimationFrame(paint);
}

function drawWaves(now) {
  const canvas = element("waves");
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  if (!width) return;
  if (canvas.width !== Math.round(width * scale)) Object.assign(canvas, { width: Math.round(width * scale), height: Math.round(height * scale) });
  const pen = canvas.getContext("2d");
  const colours = getComputedStyle(canvas);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  if (open.peaks?.[0].length !== Math.round(width)) open.peaks = open.tracks.map(({ samples }) => peaksOf(samples, Math.round(width)));
  open.peaks.forEach((peaks, track) => {
    pen.fillStyle = colours.getPropertyValue(track ? "--speak" : "--listen");
    const middle = height * (track ? 0.75 : 0.25);
    peaks.forEach((peak, x) => pen.fillRect(x, middle - (peak * height) / 4, 1, Math.max(1, (peak * height) / 2)));
  });
  pen.fillStyle = colours.getPropertyValue("--ink");
  pen.fillRect((now / open.laid.seconds) * width, 0, 1, height);
}

function peaksOf(samples, columns) {
  const step = samples.length / columns;
  return Array.from({ length: columns }, (_, x) => {
    let peak = 0;
    for (let i = Math.floor(x * step); i < (x + 1) * step; i++) peak = Math.max(peak, Math.abs(samples[i] ?? 0));
    return peak;
  });
}

async function showPicture(picture) {
  const image = element("picture");
  if (!picture) return void (image.hidden = true);
  if (image.dataset.file === picture.file) return void (image.hidden = false);
  image.dataset.file = picture.file;
  const of = open;
  const url = await pictureOf(of, picture.file).catch(() => null); // the sound goes on without it
  if (!url) return;
  if (of !== open || image.dataset.file !== picture.file) return;
  image.src = url;
  image.hidden = false;
}

const toggle = guarded(async () => {
  if (!open) return;
  if (open.player.playing) open.player.pause();
  else await open.player.play();
  paint();
});

const save = guarded(async (name) => {
  const { id } = open;
  saveFile(await (await fileOf(id, name)).blob(), `${id}-${name}`);
});

async function seek(seconds) {
  await open?.player.seek(seconds);
  paint();
}

/** As it was heard, silence and all: the person on the left, the model on the right. */
function saveBoth() {
  const side = ({ rate, samples }) => ({ rate, second: (n) => (n * rate < samples.length ? samples.subarray(n * rate, (n + 1) * rate) : null) });
  saveFile(toStereoWav(open.laid.seconds, ...open.tracks.map(side)), `${open.id}.wav`);
}

const remove = guarded(async () => {
  await ask(`sessions/${encodeURIComponent(open.id)}`, { method: "DELETE" });
  close();
  await list();
});

element("play").addEventListener("click", toggle);
element("position").addEventListener("input", () => seek(+element("position").value));
const waves = element("waves");
const seekThere = ({ offsetX }) => open && seek((Math.max(0, Math.min(offsetX, waves.clientWidth)) / waves.clientWidth) * open.laid.seconds);
waves.addEventListener("pointerdown", (event) => {
  waves.setPointerCapture(event.pointerId);
  seekThere(event);
});
waves.addEventListener("pointermove", (event) => waves.hasPointerCapture(event.pointerId) && seekThere(event));
element("both").addEventListener("click", saveBoth);
element("remove").addEventListener("click", () => confirm(words("replay.sure")) && remove());
for (const button of document.querySelectorAll("[data-file]")) if (button.type === "button") button.addEventListener("click", () => save(button.dataset.file));
element("notice-close").addEventListener("click", () => notice(""));
onKeys({ " ": toggle });
/** One above the other, the open recording comes first, for the keyboard too. */
function arrange() {
  const [first, second] = NARROW.matches ? ["player", "list"] : ["list", "player"];
  element(first).after(element(second));
}
NARROW.addEventListener("change", arrange);
arrange();
new ResizeObserver(paint).observe(element("waves"));
followTheme(element("theme"), paint);
followLanguage(element("language"), () => {
  if (recorded.length) showList();
  if (open) showOpen();
  paint();
});
list();
