// What went wrong, in words for people. Codes, close codes and reasons are those of the protocol.

const BY_CODE = {
  not_ready: "The server was not ready for that yet.",
  unknown_event: "This page and the server do not speak the same version.",
  invalid_event: "That cannot be done at this point of the conversation.",
  missing_field: "Something was missing in what was sent.",
  invalid_payload: "The server could not use what was sent.",
  service_unavailable: "The model is not available right now. Try again in a moment.",
  queue_full: "Too many people are waiting. Try again later.",
  worker_busy: "Somebody else is talking with the model. Try again in a moment.",
  worker_connect_failed: "The machine with the model cannot be reached. Try again in a moment.",
  inference_error: "The model stumbled over that. Just go on.",
  resume_refused: "That conversation is over. Start a new one.",
};

const BY_REASON = {
  timeout: "The time for this conversation is over. Start a new one whenever you like.",
  context_full: "The model's memory of this conversation is full. Start a new one to go on.",
  server_shutdown: "The server is being shut down.",
  backend_error: "The model broke off. Start again.",
  error: "The model broke off. Start again.",
  resume_refused: "The connection was lost, and the conversation with it. Start a new one.",
};

const BY_CLOSE_CODE = {
  1003: "The server could not read a message of this page.",
  1006: "The connection was lost.",
  1007: "The server could not read a message of this page.",
  1008: "The server ended the conversation: it was asked for something that it does not allow.",
  1009: "That was too large to send.",
  1011: "The model broke off. Start again.",
  1013: "The server has no place right now. Try again in a moment.",
};

const BY_DEVICE_FAULT = {
  NotAllowedError: "The browser did not get permission. Allow it in the address bar, then start again.",
  NotFoundError: "No such device was found.",
  NotReadableError: "The device is used by another program.",
  OverconstrainedError: "The device cannot do what is needed.",
};

const SOON_OVER = { timeout: "the time limit", context_full: "the model's memory is nearly full", server_shutdown: "the server is being shut down" };

/** For an `error` event; the server's own message helps where the cause is in the content. */
export function wordsForError({ code, message }) {
  const words = BY_CODE[code] ?? "Something went wrong.";
  return message && ["invalid_payload", "missing_field", "service_unavailable"].includes(code) ? `${words} (${message})` : words;
}

/** For the end of a conversation; empty when the user wanted it. */
export function wordsForEnd({ reason, code }) {
  if (reason) return BY_REASON[reason] ?? "";
  return code === 1000 ? "" : BY_CLOSE_CODE[code] ?? `The connection ended (${code}).`;
}

export function wordsForGoAway({ reason, time_left_ms }) {
  const seconds = Math.round(time_left_ms / 1000);
  return `This conversation ends in about ${seconds} s: ${SOON_OVER[reason] ?? reason}.`;
}

/** For a microphone or camera that could not be had. */
export function wordsForDevice(fault) {
  return BY_DEVICE_FAULT[fault.name] ?? fault.message;
}
