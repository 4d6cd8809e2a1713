// @openai/agents-realtime (npm) in node: RealtimeAgent, RealtimeSession and OpenAIRealtimeWebSocket on the URL of another server. See common.mjs.
// Checks: text, spoken, interrupt, tools, strict
// An `error` event fails any check. `strict`: every event of the server in these checks is one of the package's zod schemas, with all that it requires.
import { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebSocket, tool } from '@openai/agents-realtime';
import WebSocket from 'ws';
import { z } from 'zod';
import { readFileSync } from 'node:fs';
import { args, assert, base, Checks, Log, Microphone, question, silence, sleep } from './common.mjs';

const folder = new URL('./node_modules/@openai/agents-realtime/', import.meta.url);
const version = JSON.parse(readFileSync(new URL('package.json', folder))).version;
const { parseRealtimeEvent } = await import(new URL('dist/openaiRealtimeEvents.mjs', folder));
const a = args();
const checks = new Checks('agents-js ' + version, a.only);
const RATE = 24000;
const url = `${base(a.url, 'ws')}/realtime?model=parley`;
const APP_EVENTS = ['audio', 'audio_start', 'audio_stopped', 'audio_interrupted', 'agent_start', 'agent_end', 'agent_handoff', 'agent_tool_start',
  'agent_tool_end'];
const generic = new Set();
let events = 0;

const agent = (more = {}) => new RealtimeAgent({ name: 'Parley', instructions: 'Be brief.', ...more });
const turns = (turnDetection) => ({ audio: { input: { turnDetection } } });

const bytes = (pcm) => pcm.buffer.slice(pcm.byteOffset, pcm.byteOffset + pcm.length);

async function session(starter, config, body) {
  // the socket is ours for self-signed certificates; what it says and offers is the package's own
  const transport = new OpenAIRealtimeWebSocket({
    url,
    createWebSocket: async ({ url, apiKey }) => {
      const headers = { Authorization: `Bearer ${apiKey}`, ...transport.getCommonRequestHeaders() };
      return new WebSocket(url, { headers, rejectUnauthorized: false });
    },
  });
  const s = new RealtimeSession(starter, { transport, model: 'parley', config });
  const log = new Log();
  const problems = [];
  let history = [];
  s.on('error', ({ error }) => {
    problems.push(JSON.stringify(error?.error ?? error?.message ?? error) ?? String(error));
    log.add({ type: 'problem' });
  });
  s.on('transport_event', (e) => {
    events++;
    if (parseRealtimeEvent({ data: JSON.stringify(e) }).isGeneric) generic.add(JSON.stringify(e).slice(0, 200));
    log.add(e);
  });
  s.on('history_updated', (h) => { history = h; });
  for (const name of APP_EVENTS) s.on(name, (...what) => log.add({ type: 'app.' + name, what }));
  const until = (likes, since) => log.until((e) => {
    if (problems.length) throw new Error(problems[0]);
    return typeof likes === 'string' ? e.type === likes : likes(e);
  }, since);
  await s.connect({ apiKey: a.key });
  try {
    const told = await body({ s, log, until, history: () => history });
    assert(!problems.length, problems[0]);
    return told;
  } finally { s.close(); }
}

const text = (item) => item.content.map((c) => c.text ?? c.transcript ?? '').join('');
const roles = (history) => history.map((i) => i.role ?? i.type).join(' ');
const said = (history) => history.filter((i) => i.role === 'assistant').map(text).join(' ');
const heard = (log) => log.all.filter((e) => e.type === 'app.audio').reduce((n, e) => n + e.what[0].data.byteLength, 0) / 2 / RATE;

await checks.run('text', () => session(agent(), turns(null), async ({ s, log, until, history }) => {
  s.sendMessage('What is your name?');
  const end = await until('app.agent_end');
  const at = ['app.agent_start', 'app.audio_start', 'app.audio', 'app.audio_stopped', 'app.agent_end'].map((t) => log.all.findIndex((e) => e.type === t));
  assert(at.every((x, i) => x >= 0 && (i === 0 || x > at[i - 1])), `order ${at}`);
  await until('response.done');
  assert(roles(history()) === 'user assistant' && text(history()[0]) === 'What is your name?', roles(history()));
  assert(said(history()) && log.all[end].what[2] === said(history()), `'${log.all[end].what[2]}', not '${said(history())}'`);
  assert(heard(log) > 0.1 && s.usage.totalTokens > 0, `${heard(log)} s, ${s.usage.totalTokens} tokens`);
  return `'${said(history())}', ${heard(log).toFixed(1)} s`;
}), a.wait);

await checks.run('spoken', () => session(agent(), turns({ type: 'semantic_vad' }), async ({ s, log, until, history }) => {
  const mic = new Microphone(RATE, (pcm) => s.sendAudio(bytes(pcm)));
  mic.say(Buffer.concat([silence(500, RATE), question(RATE, a.wav)]));
  try { await until('app.agent_end'); } finally { mic.stop(); }
  assert(roles(history()) === 'user assistant' && history()[0].content[0].type === 'input_audio', roles(history()));
  assert(heard(log) > 0.1, 'no sound');
  return `'${said(history())}', ${heard(log).toFixed(1)} s`;
}), a.wait);

await checks.run('interrupt', async () => {
  const byUser = turns({ type: 'server_vad', silenceDurationMs: 300, interruptResponse: true });
  await session(agent(), byUser, async ({ s, log, until }) => {
    const mic = new Microphone(RATE, (pcm) => s.sendAudio(bytes(pcm)), 50);
    mic.say(Buffer.concat([silence(300, RATE), question(RATE, a.wav)]));
    try {
      const sound = await until('response.output_audio.delta');
      mic.say(question(RATE, a.wav));
      let at = await until('app.audio_interrupted', sound);
      const done = log.all[await until('response.done')].response;
      assert(done.status === 'cancelled' && done.status_details.reason === 'turn_detected', JSON.stringify(done));
      at = await until('conversation.item.truncated', at);
      assert(log.all[at].item_id === log.all[sound].item_id, 'another item was cut');
      at = await until('conversation.item.retrieved', at);
      await until('app.agent_end', await until('app.audio', at));
    } finally { mic.stop(); }
  });
  return session(agent(), turns(null), async ({ s, log, until }) => { // by the application
    s.sendMessage('Tell me a long story.');
    const sound = await until('app.audio');
    s.interrupt();
    const done = await until('response.done', sound);
    await until('conversation.item.retrieved', await until('conversation.item.truncated'));
    s.sendMessage('And now?'); // and it goes on
    await until('response.done', await until('app.audio', done));
    return 'turn_detected; interrupt(): ' + log.all[done].response.status;
  });
}, 2 * a.wait);

await checks.run('tools', () => {
  const asked = [];
  const weather = tool({
    name: 'get_weather', description: 'Weather in a city', parameters: z.object({ city: z.string() }),
    execute: async ({ city }) => { asked.push(city); await sleep(200); return 'sunny'; },
  });
  const waiter = agent({ name: 'Waiter', instructions: 'You book tables.' });
  const ask = (s, words, choice) => {
    s.transport.sendMessage(words, {}, { triggerResponse: false });
    s.transport.requestResponse({ tool_choice: choice });
  };
  return session(agent({ tools: [weather], handoffs: [waiter] }), { ...turns(null), toolChoice: 'none' }, async ({ s, log, until, history }) => {
    ask(s, 'What is the weather in Paris?', { type: 'function', name: 'get_weather' });
    await until('app.agent_tool_start');
    let at = await until('app.agent_tool_end');
    assert(log.all[at].what[3] === 'sunny' && asked.length === 1, `${asked}: ${log.all[at].what[3]}`);
    at = await until('response.done', await until('app.audio', at));
    const call = history().find((i) => i.type === 'function_call');
    assert(call?.name === 'get_weather' && call.status === 'completed' && call.output === 'sunny', JSON.stringify(history()));
    const weatherSaid = said(history());
    ask(s, 'I want a table.', { type: 'function', name: 'transfer_to_Waiter' });
    at = await until('app.agent_handoff', at);
    assert(log.all[at].what[2].name === 'Waiter', 'handed to another');
    await until((e) => e.type === 'session.updated' && e.session.instructions === 'You book tables.');
    await until('response.done', await until('app.audio', at));
    return `get_weather('${asked[0]}') then '${weatherSaid}', then to the Waiter`;
  });
}, 2 * a.wait);

await checks.run('strict', async () => {
  if (!events) {
    await session(agent(), turns(null), async ({ s, until }) => { s.sendMessage('Hello'); await until('response.done'); });
  }
  assert(!generic.size, `${generic.size} events are none of the schemas': ${[...generic][0]}`);
  return `${events} events`;
}, a.wait);
checks.exit();
