/** Whether the server can take a conversation: {ready, words, recording}; `recording` is undefined of servers that do not tell. */
export async function askServer() {
  try {
    const answer = await fetch("ready", { cache: "no-store" });
    const { error, recording } = await answer.json();
    return { ready: answer.ok, words: answer.ok ? "ready" : error.message, recording };
  } catch {
    return { ready: false, words: "not reachable" };
  }
}

/** Why there was not even a connection: browsers do not tell pages. */
export async function whyRefused() {
  const { ready, words } = await askServer();
  if (!ready) return `The server is not there for you: ${words}.`;
  return "The server refused the connection. If it asks for an API key, enter yours in the settings; it may also allow only so many conversations at a time.";
}
