import { onKeys } from "./keys.js";
import { ReplayPlayer } from "./replay_player.js";
import { inTime, layOut, readWav } from "./replay_timeline.js";

const element = (id) => document.getElementById(id);
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
const OVER = ["closed", "failed", "cut"];

let open = null; // {id, laid, tracks, player, pictures}
let asked = 0;

/** An answer of the server; a key that was entered on the page goes along. */
async function ask(path, options = {}) {
  const key = JSON.parse(sessionStorage.getItem("parley.key") ?? '""');
  const answer = await fetch(path, { cache: "no-store", ...options, headers: key ? { Authorization: `Bearer ${key}` } : {} });
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer;
}

const fileOf = (id, name) => ask(`sessions/${encodeURIComponent(id)}/${name}`);

function guarded(action) {
  return async (...given) => {
    try {
      element("notice").hidden = true;
      await action(...given);
    } catch (fault) {
      element("notice").textContent = fault.message;
      element("notice").hidden = false;
    }
  };
}

const list = guarded(async () => {
  const { sessions } = await (await ask("sessions")).json();
  const recorded = sessions.filter(({ state }) => OVER.includes(state));
  element("none").hidden = recorded.length > 0;
  element("recordings").replaceChildren(
    ...recorded.map((facts) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.id = facts.session_id;
      button.textContent = new Date(facts.started_ms).toLocaleString();
      const more = document.createElement("small");
      more.textContent = `${facts.mode}, ${clock(facts.seconds)}, ${facts.reason || facts.state}`;
      button.append(more);
      button.addEventListener("click", () => show(facts));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }),
  );
});

const show = guarded(async ({ session_id: id, started_ms, mode }) => {
  const number = ++asked;
  close();
  const [lines, input, output] = await Promise.all([
    fileOf(id, "events.jsonl").then((answer) => answer.text()),
    fileOf(id, "input.wav").then((answer) => answer.arrayBuffer()),
    fileOf(id, "output.wav").then((answer) => answer.arrayBuffer()),
  ]);
  if (number !== asked) return;
  const laid = layOut(lines.split("\n").filter(Boolean).map((line) => JSON.parse(line)));
  const tracks = [inTime(readWav(input), laid.input, laid.seconds), inTime(readWav(output), laid.output, laid.seconds)];
  open = { id, laid, tracks, player: new ReplayPlayer(tracks, laid.seconds, paint), pictures: new Map() };
  for (const button of element("recordings").querySelectorAll("button")) button.setAttribute("aria-current", button.dataset.id === id);
  element("title").textContent = `${new Date(started_ms).toLocaleString()}, ${mode}, ${id}`;
  element("position").max = laid.seconds;
  element("lines").replaceChildren(...laid.lines.map(lineItem));
  element("player").hidden = false;
  element("player").scrollIntoView({ block: "nearest" });
  paint();
});

function close() {
  open?.player.close();
  for (const url of open?.pictures.values() ?? []) URL.revokeObjectURL(url);
  open = null;
  element("player").hidden = true;
  element("picture").hidden = true;
  element("picture").removeAttribute("data-file");
}

function lineItem({ start, who, text }) {
  const item = document.createElement("li");
  item.dataset.start = start;
  const time = document.createElement("time");
  time.textContent = clock(start);
  const words = document.createElement("span");
  words.textContent = who ? `${who}: ${text.trim()}` : text;
  item.append(time, words);
  return item;
}

/** Shows where the replay is; goes on by itself while it plays. */
function paint() {
  if (!open) return;
  const { player, laid } = open;
  const now = player.position;
  element("play").textContent = player.playing ? "Pause" : "Play";
  document.body.dataset.state = player.playing ? "playing" : "idle";
  element("position").value = now;
  element("now").textContent = `${clock(now)} of ${clock(laid.seconds)}`;
  for (const item of element("lines").children) item.classList.toggle("said", +item.dataset.start <= now);
  drawWaves(now);
  showPicture(laid.pictures.findLast(({ start }) => start <= now));
  if (player.playing) requestAnimationFrame(paint);
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
  open.peaks ??= open.tracks.map(({ samples }) => peaksOf(samples, Math.round(width)));
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
  if (!of.pictures.has(picture.file)) {
    try {
      of.pictures.set(picture.file, URL.createObjectURL(await (await fileOf(of.id, picture.file)).blob()));
    } catch {
      return; // the sound goes on without it
    }
  }
  if (of !== open || image.dataset.file !== picture.file) return;
  image.src = of.pictures.get(picture.file);
  image.hidden = false;
}

const toggle = guarded(async () => {
  if (!open) return;
  if (open.player.playing) open.player.pause();
  else await open.player.play();
  paint();
});

const save = guarded(async (name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await fileOf(open.id, name)).blob());
  link.download = `${open.id}-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

const remove = guarded(async () => {
  await ask(`sessions/${encodeURIComponent(open.id)}`, { method: "DELETE" });
  close();
  await list();
});

element("play").addEventListener("click", toggle);
element("position").addEventListener("input", () => {
  open?.player.seek(+element("position").value);
  paint();
});
element("remove").addEventListener("click", () => confirm("Delete this recording for good?") && remove());
for (const button of document.querySelectorAll("[data-file]")) if (button.type === "button") button.addEventListener("click", () => save(button.dataset.file));
onKeys({ " ": toggle });
list();
