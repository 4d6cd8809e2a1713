import { canShareScreen } from "./devices.js";
import { words } from "./words.js";

const element = (id) => document.getElementById(id);
const isOn = (id) => element(id).getAttribute("aria-pressed") === "true";

/** The round buttons of a running conversation: what of the user goes out. `current()` is the conversation, or null. */
export class Controls {
  #current;
  #view;
  #settings;
  #source = "gone";

  constructor(current, view, settings) {
    this.#current = current;
    this.#view = view;
    this.#settings = settings;
    element("mute").addEventListener("click", () => this.mute());
    element("pause").addEventListener("click", () => this.pause());
    element("flip").addEventListener("click", () => this.flip());
    element("lens").addEventListener("click", () => current()?.turnCamera(isOn("lens")));
    element("screen").addEventListener("click", () => (isOn("screen") ? current()?.turnCamera(true) : current()?.shareScreen()));
    const hold = element("hold");
    hold.addEventListener("pointerdown", (event) => {
      hold.setPointerCapture(event.pointerId); // until it is let go, wherever that is
      this.hold(true);
    });
    for (const end of ["pointerup", "pointercancel", "blur"]) hold.addEventListener(end, () => this.hold(false));
    hold.addEventListener("keydown", ({ key }) => [" ", "Enter"].includes(key) && this.hold(true));
    hold.addEventListener("keyup", () => this.hold(false));
    hold.addEventListener("contextmenu", (event) => event.preventDefault()); // a long touch is not a menu here
    window.addEventListener("blur", () => this.hold(false)); // a key that is let go elsewhere is not seen here
  }

  /** Whether the microphone is open only while something is held. */
  get holds() {
    return document.body.dataset.hold === "true";
  }

  begin() {
    document.body.dataset.hold = this.#settings.pushToTalk;
    this.#mute(this.holds);
  }

  end() {
    document.body.dataset.hold = false;
    this.#mute(false);
    this.#pause(false);
    this.from("gone");
    this.cameras(0);
  }

  mute() {
    if (this.#current() && !this.holds) this.#mute(!isOn("mute"));
  }

  hold(down) {
    if (this.#current() && this.holds) this.#mute(!down);
  }

  pause() {
    if (this.#current()) this.#pause(!isOn("pause"));
  }

  flip() {
    this.#current()?.flip();
  }

  cameras(count) {
    element("flip").hidden = count < 2;
  }

  /** Where the pictures come from: "camera", "screen", "off", or "gone" where there are none. */
  from(source) {
    this.#source = source;
    element("lens").hidden = source === "gone";
    element("screen").hidden = source === "gone" || !canShareScreen();
    element("lens").setAttribute("aria-pressed", source === "off");
    element("screen").setAttribute("aria-pressed", source === "screen");
    this.show();
  }

  /** In the present language. */
  show() {
    element("lens").title = words(this.#source === "off" ? "lens.on" : "lens.off");
    element("screen").title = words(this.#source === "screen" ? "screen.off" : "screen.on");
  }

  #mute(value) {
    if (this.#current()) this.#current().muted = value;
    this.#view.muted = value;
    element("mute").setAttribute("aria-pressed", value);
    element("hold").setAttribute("aria-pressed", !value);
  }

  #pause(value) {
    if (this.#current()) this.#current().paused = value;
    this.#view.paused = value;
    element("pause").setAttribute("aria-pressed", value);
  }
}
