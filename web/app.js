import { Answers } from "./answers.js";
import { Captions } from "./captions.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { Controls } from "./controls.js";
import { DeviceChoice } from "./device_choice.js";
import { Duplex } from "./duplex.js";
import { EarlierList } from "./earlier_list.js";
import { Farewell } from "./farewell.js";
import { inFileName, saveFile } from "./files.js";
import { kept, keptInTab } from "./kept.js";
import { onKeys } from "./keys.js";
import { Measures } from "./measures.js";
import { Orb } from "./orb.js";
import { askServer } from "./server.js";
import { Settings } from "./settings.js";
import { followTheme } from "./theme.js";
import { View } from "./view.js";
import { followLanguage, words } from "./words.js";

const ASK_SERVER_MS = 15000;
const LEFT = "left"; // what it takes to go on after a reload

const element = (id) => document.getElementById(id);
const settings = new Settings(() => devices.list());
const page = {
  view: new View(showServer),
  captions: new Captions(element("entries"), element("caption"), () => earlier.changed()),
  measures: new Measures(),
  orb: new Orb(element("orb")),
  preview: element("preview"),
};
const chat = new Chat(settings, page);
const answers = new Answers({ name: element("model"), knows: element("knows"), invitation: element("invitation"), examples: element("examples") }, (text) => {
  if (duplex || chat.busy) return;
  if (mode() !== "chat") document.querySelector("[name=mode][value=chat]").click(); // what is clicked is written
  page.view.notice("");
  chat.ask(text, []);
});
let duplex = null;
const farewell = new Farewell();
let sound = null; // of the last conversation
const earlier = new EarlierList(
  () => ({ mode: mode(), lines: page.captions.lines }),
  (conversation) => {
    if (duplex || chat.busy) return;
    page.captions.load(conversation.lines);
    chat.remember(conversation.lines);
  },
);
const controls = new Controls(() => duplex, page.view, settings);
const devices = new DeviceChoice((kind) => duplex?.change(kind));

function mode() {
  return document.body.dataset.mode;
}

function toggle() {
  page.view.notice("");
  if (duplex) return duplex.stop();
  if (mode() === "chat") return chat.stop();
  talk(null);
}

/** `claim`: of the conversation that goes on. */
function talk(claim) {
  page.measures.clear();
  devices.stop();
  const on = {
    cameras: (count) => controls.cameras(count),
    source: (name) => controls.from(name),
    begun: (heard) => {
      sound = heard;
      element("save-sound").hidden = false;
    },
    over: () => {
      duplex = null;
      controls.end();
    },
  };
  duplex = new Duplex(mode(), settings, devices, page, on, claim);
  controls.begin();
}

/** Whoever closes the page leaves: the slot is for somebody else. Whoever loads it again may go on. */
function leave({ persisted }) {
  const claim = duplex?.claim;
  const seenTo = claim && farewell.leave({ session: claim.session, ...duplex.way });
  if (persisted && (seenTo || !duplex)) return; // the page may come back as it is, and its session, soon
  earlier.keep();
  if (seenTo) {
    keptInTab.set(LEFT, JSON.stringify({ ...claim, id: earlier.id, at: Date.now() }));
  } else {
    duplex?.stop();
  }
  chat.leave();
}

/** Offers to go on with the conversation that was running when the page was loaded again, for as long as the server waits. */
function offerToGoOn() {
  const left = JSON.parse(keptInTab.get(LEFT) ?? "null");
  keptInTab.set(LEFT, "null");
  if (!left || !farewell.isBack(left.session, Date.now() - left.at)) return;
  const remaining = () => left.seconds - (Date.now() - left.at) / 1000;
  const withdraw = setTimeout(() => page.view.notice(""), remaining() * 1000);
  const goOn = () => {
    clearTimeout(withdraw);
    page.view.notice("");
    if (duplex || chat.busy) return;
    document.querySelector(`[name=mode][value=${left.mode}]`).click();
    earlier.open(left.id);
    talk({ ...left, seconds: remaining() });
  };
  page.view.notice(words("again"), { words: words("again.go_on"), run: goOn });
}

function interrupt() {
  if (mode() === "chat") return chat.stop();
  duplex?.interrupt();
}

function choose(chosen) {
  if (chosen !== "chat") chat.leave();
  document.body.dataset.mode = chosen;
  element("entries").ariaLive = chosen === "chat" ? "polite" : "off"; // what is spoken has its caption
  kept.set("mode", chosen);
  page.view.ended = false;
  page.measures.clear();
}

function clear() {
  chat.stop();
  chat.forget();
  page.captions.clear();
  earlier.begin();
  if (duplex) return;
  sound = null;
  element("save-sound").hidden = true;
}

function saveSound() {
  saveFile(sound.toWav(), `parley-${inFileName(new Date())}.wav`);
}

async function showServer() {
  const server = await askServer();
  page.view.server(server);
  if (server.model) answers.model = server.model;
}

for (const radio of document.getElementsByName("mode")) {
  radio.checked = radio.value === (kept.get("mode") ?? mode());
  radio.addEventListener("change", () => choose(radio.value));
  radio.parentElement.addEventListener("click", () => radio.disabled && !radio.checked && page.view.notice(words("mode.locked")));
  if (radio.checked) choose(radio.value);
}
new Composer(
  () => chat.busy,
  (text, pictures) => {
    page.view.notice("");
    chat.ask(text, pictures);
  },
  (fault) => page.view.notice(fault),
);
element("start").addEventListener("click", toggle);
element("cancel").addEventListener("click", () => chat.stop());
element("interrupt").addEventListener("click", interrupt);
element("save").addEventListener("click", () => page.captions.save());
element("save-sound").addEventListener("click", saveSound);
element("clear").addEventListener("click", clear);
element("notice-close").addEventListener("click", () => page.view.notice(""));
const pressed = {
  Escape: interrupt,
  " ": () => mode() !== "chat" && (duplex && controls.holds ? controls.hold(true) : toggle()),
  m: () => controls.mute(),
  p: () => controls.pause(),
  f: () => controls.flip(),
  s: () => settings.open(),
};
onKeys(pressed, { " ": () => controls.hold(false) });
settings.onVolume((volume) => {
  if (duplex) duplex.volume = volume;
  chat.volume = volume;
});
settings.onAloud((aloud) => {
  element("speaker").setAttribute("aria-pressed", aloud);
  if (!aloud) chat.silence();
});
element("speaker").addEventListener("click", () => (settings.aloud = !settings.aloud));
followTheme(element("theme"), () => page.measures.redraw());
followLanguage(element("language"), () => {
  page.view.show();
  page.measures.redraw();
  answers.show();
  controls.show();
  devices.show();
  earlier.show();
  showServer();
});
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", ({ persisted }) => persisted && duplex?.claim && farewell.isBack(duplex.claim.session, 0));
offerToGoOn();
for (const event of ["online", "offline"]) window.addEventListener(event, showServer);
setInterval(() => document.visibilityState === "visible" && !page.view.linked && showServer(), ASK_SERVER_MS);
