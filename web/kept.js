/** The user's choices, stored by the browser. Where site data is blocked, they last until the page is closed. */
class Kept {
  #area; // "localStorage" or "sessionStorage": naming it throws where site data is blocked
  #here = new Map();

  constructor(area) {
    this.#area = area;
  }

  /** The text of that name, or null. */
  get(name) {
    try {
      return window[this.#area].getItem(`parley.${name}`);
    } catch {
      return this.#here.get(name) ?? null;
    }
  }

  set(name, value) {
    try {
      window[this.#area].setItem(`parley.${name}`, value);
    } catch {
      this.#here.set(name, String(value));
    }
  }
}

export const kept = new Kept("localStorage");
export const keptInTab = new Kept("sessionStorage"); // outlives a reload
