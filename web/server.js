import { words, wordsOf } from "./words.js";

/** The server's own words for why it takes no conversation, in the present language. */
export function wordsForReason(said) {
  return wordsOf("reason", said.replaceAll(" ", "_"), said);
}

/**
 * Whether the server can take a conversation, and if not, why: {ready, words, why, recording, model, key_required, name_allowed}. Of a server
 * that did not answer only the first three are known, and `gone` is true.
 */
export async function askServer() {
  try {
    const answer = await fetch("ready", { cache: "no-store" });
    const { error, ...facts } = await answer.json();
    if (answer.ok) return { ...facts, ready: true, words: words("server.ready") };
    const why = wordsForReason(error.message);
    return { ...facts, ready: false, words: words("server.not_ready", { why }), why };
  } catch {
    const why = words("server.unreachable");
    return { ready: false, words: why, why, gone: true };
  }
}

/** What would keep a conversation from beginning: {words, key}, which say what to do about it; null if nothing is known. `key`: one has to be entered. */
export async function whatIsMissing(key) {
  const server = await askServer();
  if (server.gone) return { words: words("missing.server", { host: location.host }) };
  if (server.key_required && !key) return { words: words("missing.key"), key: true };
  if (server.name_allowed === false) return { words: words("missing.name", { name: location.hostname }) };
  return server.ready ? null : { words: words("server.absent", { why: server.why }) };
}

/** Why there was not even a connection: browsers do not tell pages. */
export async function whyRefused(key) {
  const missing = await whatIsMissing(key);
  if (missing) return missing.words;
  if (!key) return words("server.refused");
  const answer = await fetch("sessions", { cache: "no-store", headers: { Authorization: `Bearer ${key}` } }).catch(() => null);
  return words(answer?.status === 401 ? "missing.right_key" : "server.refused");
}
