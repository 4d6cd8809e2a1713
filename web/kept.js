/** What a browser keeps of the user's choices. Where it keeps nothing for this site, they last as long as the page. */
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
    this.#here.set(name, String(value));
    try {
      window[this.#area].setItem(`parley.${name}`, value);
    } catch {
      // kept here alone
    }
  }
}

export const kept = new Kept("localStorage");
export const keptInTab = new Kept("sessionStorage"); // outlives a reload
