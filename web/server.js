import { words } from "./words.js";

/** Whether the server can take a conversation, and if not, why: {ready, words, why, recording}; `recording` is undefined of servers that do not tell. */
export async function askServer() {
  try {
    const answer = await fetch("ready", { cache: "no-store" });
    const { error, recording } = await answer.json();
    if (answer.ok) return { ready: true, words: words("server.ready"), recording };
    return { ready: false, words: words("server.not_ready", { why: error.message }), why: error.message, recording };
  } catch {
    const why = words("server.unreachable");
    return { ready: false, words: why, why };
  }
}

/** The name of the model that answers, or null where it is not told. */
export async function askModel() {
  try {
    const answer = await fetch("v1/models", { cache: "no-store" });
    return answer.ok ? (await answer.json()).data[0].id : null;
  } catch {
    return null;
  }
}

/** Why there was not even a connection: browsers do not tell pages. */
export async function whyRefused() {
  const { ready, why } = await askServer();
  return ready ? words("server.refused") : words("server.absent", { why });
}
