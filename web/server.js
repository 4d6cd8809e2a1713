/** Whether the server can take a conversation: {ready, words}. */
export async function askServer() {
  try {
    const answer = await fetch("ready", { cache: "no-store" });
    if (answer.ok) return { ready: true, words: "ready" };
    return { ready: false, words: (await answer.json()).error.message };
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
