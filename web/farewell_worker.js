const BACK_MS = 4000; // a page that is loaded again is there by then

const waiting = new Map(); // session -> timer

/** Outlives the pages that use it: ends the session of one that has gone and is not back soon, so that the slot is for somebody else. */
self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data: { session, claim } }) => {
    clearTimeout(waiting.get(session));
    waiting.delete(session);
    if (claim) waiting.set(session, setTimeout(() => end(session, claim), BACK_MS));
  };
};

function end(session, { url, subprotocols }) {
  waiting.delete(session);
  const socket = new WebSocket(url, subprotocols);
  socket.onmessage = ({ data }) => {
    if (JSON.parse(data).type === "session.resumed") socket.send(JSON.stringify({ type: "session.close", reason: "user_stop" }));
  };
}
