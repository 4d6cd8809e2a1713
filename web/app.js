import { Answers } from "./answers.js";
import { Captions } from "./captions.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { Controls } from "./controls.js";
import { DeviceChoice } from "./device_choice.js";
import { Duplex } from "./duplex.js";
import { kept } from "./kept.js";
import { onKeys } from "./keys.js";
import { Measures } from "./measures.js";
import { Orb } from "./orb.js";
import { askServer } from "./server.js";
import { Settings } from "./settings.js";
import { followTheme } from "./theme.js";
import { View } from "./view.js";
import { followLanguage, words } from "./words.js";

const ASK_SERVER_MS = 15000;

const element = (id) => document.getElementById(id);
const settings = new Settings();
const page = {
  view: new View(showServer),
  captions: new Captions(element("entries"), element("caption")),
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
const controls = new Controls(() => duplex, page.view, settings);
const devices = new DeviceChoice((kind) => duplex?.change(kind));

function mode() {
  return document.body.dataset.mode;
}

function toggle() {
  page.view.notice("");
  if (duplex) return duplex.stop();
  if (mode() === "chat") return chat.stop();
  page.measures.clear();
  devices.stop();
  duplex = new Duplex(mode(), settings, devices, page, {
    cameras: (count) => controls.cameras(count),
    source: (name) => controls.from(name),
    over: () => {
      duplex = null;
      controls.end();
    },
  });
  controls.begin();
}

/** Whoever closes the page leaves: the slot is for somebody else. */
function leave({ persisted }) {
  if (persisted) return; // the page may come back as it is
  duplex?.stop();
  chat.leave();
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
  showServer();
});
window.addEventListener("pagehide", leave);
for (const event of ["online", "offline"]) window.addEventListener(event, showServer);
setInterval(() => document.visibilityState === "visible" && showServer(), ASK_SERVER_MS);
