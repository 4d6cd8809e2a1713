// What went wrong, in words for people. Codes, close codes and reasons are those of the protocol.
import { wordsForReason } from "./server.js";
import { inTime, words, wordsOf } from "./words.js";

/** For an `error` event; the server's own message helps where the cause is in the content. */
export function wordsForError({ code, message }) {
  const said = wordsOf("error", code, words("error.unknown"));
  const explained = message && ["invalid_payload", "missing_field", "service_unavailable"].includes(code);
  return explained ? words("error.because", { words: said, message: wordsForReason(message) }) : said;
}

/** For the end of a conversation; empty when the user wanted it. */
export function wordsForEnd({ reason, code }) {
  if (reason) return wordsOf("over", reason);
  return code === 1000 ? "" : wordsOf("code", code, words("code.other", { code }));
}

export function wordsForGoAway({ reason, time_left_ms }) {
  return words("soon", { time: inTime(Math.round(time_left_ms / 1000), "second"), why: wordsOf("soon", reason, reason) });
}

/** For a microphone or camera that could not be had. */
export function wordsForDevice({ name }) {
  return wordsOf("device", name, words("device.unknown", { name }));
}
