const INPUT_RATE = 16000;
const OUTPUT_RATE = 24000;
const LONGEST_TITLE = 60; // characters
const PICTURE = /^frames\/\w+\.\w+$/;

/**
 * Where in time everything of a recording was: {seconds, input, output, lines, pictures}. Clients send what they like, so nothing that they sent
 * is taken to be of any form; `samples` {wav: how many} says how long the tracks are, if that is known. `input` and `output` hold pieces {start, at, samples}:
 * from sample `at` of its file, heard from `start` on, in seconds since the connection. `lines` {start, who, text, pictures}, `pictures` {start, file};
 * a line of the user that was spoken and could not be written down has no text, but `spoke`: how many seconds.
 */
export function layOut(events, samples = null) {
  const laid = { seconds: 0, input: [], output: [], lines: [], pictures: [] };
  const end = (pieces, rate) => (pieces.length ? pieces.at(-1).start + pieces.at(-1).samples / rate : 0);
  let finished = true; // the model's turn: its last sound is out
  let response = null;
  const turns = []; // of the user, as the server found them: docs/protocol.md 16

  const soundsIn = (event) => find(event, "wav").filter((sound) => lies(sound, samples));

  function heard({ at, samples }, now) {
    // What was said had been said when it was sent.
    const start = Math.max(end(laid.input, INPUT_RATE), now - samples / INPUT_RATE);
    if (samples) laid.input.push({ start, at, samples });
  }

  function spoken({ at, samples }, now) {
    const start = Math.max(end(laid.output, OUTPUT_RATE), now);
    if (samples) laid.output.push({ start, at, samples });
  }

  /** As the clients do it: what was not played yet of a broken turn is not heard. */
  function cut(now) {
    if (finished) return;
    laid.output = laid.output.filter(({ start }) => start < now);
    const last = laid.output.at(-1);
    if (last) last.samples = Math.min(last.samples, Math.round((now - last.start) * OUTPUT_RATE));
  }

  function said(event, now) {
    if (!event.text) return;
    const line = laid.lines.at(-1);
    if (line?.who === "model" && response === (event.response_id ?? null)) line.text += event.text;
    else laid.lines.push({ start: now, who: "model", text: event.text, pictures: [] });
    response = event.response_id ?? null;
  }

  for (const { t, from, event } of events) {
    const now = t / 1000;
    laid.seconds = Math.max(laid.seconds, now);
    if (event?.type === "input.transcript" && from === "server") {
      if (event.text || event.problem) turns.push(event);
      continue;
    }
    if (from === "client") {
      for (const sound of soundsIn(event)) heard(sound, now);
      for (const file of picturesIn(event)) laid.pictures.push({ start: now, file });
      const content = listOf(event?.input?.messages).at(-1)?.content;
      const text = typeof content === "string" ? content : listOf(content).map((item) => textOf(item?.text)).join(" ").trim();
      const pictures = picturesIn(content);
      if (text || pictures.length) laid.lines.push({ start: now, who: "user", text, pictures });
      continue;
    }
    if (event.type === "response.listen" || event.kind === "listen") {
      cut(now);
      finished = true;
    } else if (event.type === "response.output.delta" || event.type === "response.output_audio.delta") {
      said(event, now);
      for (const sound of soundsIn(event)) spoken(sound, now);
      finished = Boolean(event.end_of_turn);
      if (event.end_of_turn) response = Symbol("none");
    } else if (event.type === "response.done") {
      if (!laid.lines.length || laid.lines.at(-1).who !== "model") said(event, now);
      for (const sound of soundsIn(event)) spoken(sound, now);
      finished = true;
    } else if (event.type === "session.closed") {
      laid.lines.push({ start: now, who: "end", text: event.reason, pictures: [] });
    }
  }
  const lines = turns.map(({ text, start_ms, end_ms }) => ({
    start: whenHeard(laid.input, start_ms),
    who: "user",
    text,
    pictures: [],
    ...(text ? {} : { spoke: (end_ms - start_ms) / 1000 }),
  }));
  laid.lines = [...lines, ...laid.lines].sort((a, b) => a.start - b.start); // of two at once, the question first
  laid.seconds = Math.max(laid.seconds, end(laid.input, INPUT_RATE), end(laid.output, OUTPUT_RATE));
  return laid;
}

/** When a place in the received sound was heard; between the pieces there was nothing to hear. */
function whenHeard(pieces, ms) {
  const sample = (ms * INPUT_RATE) / 1000;
  const piece = pieces.findLast(({ at }) => at <= sample) ?? pieces[0];
  return piece ? piece.start + (sample - piece.at) / INPUT_RATE : ms / 1000;
}

/** What a conversation is called: the first words that anybody said, shortened; empty when nothing was. */
export function titleOf(lines) {
  const text = lines.find((line) => line.who !== "end" && line.text.trim())?.text.trim() ?? "";
  return text.length > LONGEST_TITLE ? `${text.slice(0, LONGEST_TITLE).trimEnd()}…` : text;
}

const listOf = (value) => (Array.isArray(value) ? value : []);
const textOf = (value) => (typeof value === "string" ? value : "");

/** The names of the files of pictures. */
function picturesIn(value) {
  return find(value, "file").flatMap(({ file }) => (PICTURE.test(file) ? [file] : []));
}

/** Whether a piece of sound lies in its track. */
function lies({ wav, at, samples }, tracks) {
  const counts = [at, samples].every((count) => Number.isSafeInteger(count) && count >= 0);
  return counts && (!tracks || at + samples <= (tracks[wav] ?? 0));
}

/** Every object in a JSON value that has a member of that name with a text, in order. */
function find(value, name) {
  if (value === null || typeof value !== "object") return [];
  if (typeof value[name] === "string" && ("samples" in value || "bytes" in value)) return [value];
  return Object.values(value).flatMap((inner) => find(inner, name));
}

/** The track as it was heard, silence and all. */
export function asHeard({ rate, samples }, pieces, seconds) {
  const track = new Float32Array(Math.ceil(seconds * rate) + 1);
  for (const { start, at, samples: length } of pieces) track.set(samples.subarray(at, at + length), Math.round(start * rate));
  return { rate, samples: track };
}
