const BACK_MS = 4000; // as in farewell_worker.js

/**
 * Tells a reload from a farewell. Browsers do not, but some let a worker live on for a while after its page: it ends the session unless the page comes
 * back. Where there is no such worker, whoever goes has left.
 */
export class Farewell {
  #port = null;

  constructor() {
    if (!window.SharedWorker) return;
    let outlives = false;
    const options = {
      name: "farewell",
      get extendedLifetime() {
        return (outlives = true); // asked for only where it is known
      },
    };
    try {
      const { port } = new SharedWorker("farewell_worker.js", options);
      if (outlives) this.#port = port;
    } catch {
      // where site data is blocked
    }
  }

  /** The page goes; true if its session is seen to. `claim`: {session, url, subprotocols}. */
  leave({ session, ...claim }) {
    this.#port?.postMessage({ session, claim });
    return this.#port !== null;
  }

  /** The page that left so many ms ago is here again; true if its session is still there. */
  isBack(session, away) {
    this.#port?.postMessage({ session });
    return away < BACK_MS;
  }
}
