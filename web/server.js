import { words } from "./words.js";

/** Whether the server can take a conversation: {ready, words, recording}; `recording` is undefined of servers that do not tell. */
export async function askServer() {
  try {
    const answer = await fetch("ready", { cache: "no-store" });
    const { error, recording } = await answer.json();
    return { ready: answer.ok, words: answer.ok ? words("server.ready") : error.message, recording };
  } catch {
    return { ready: false, words: words("server.unreachable") };
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
  const { ready, words: why } = await askServer();
  return ready ? words("server.refused") : words("server.absent", { why });
}
