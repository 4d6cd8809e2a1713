// ai (npm) with @ai-sdk/openai: experimental_realtime over a WebSocket of the application's, as on a server. See common.mjs.
// Checks: live, a client's delegation
import { createOpenAI } from '@ai-sdk/openai';
import { readFileSync } from 'node:fs';
import { args, assert, base, Checks, Log, Microphone, question, silence } from './common.mjs';

const a = args();
const version = JSON.parse(readFileSync(new URL('./node_modules/ai/package.json', import.meta.url))).version;
const checks = new Checks('ai ' + version, a.only);
const provider = createOpenAI({ baseURL: base(a.url, 'http'), apiKey: a.key });
const RATE = 24000;

// The second question is answered while the work that the first one asks for is under way; then its result is told.
async function askedTwice(model, ready, begin, asked, words, answer) {
  const { url, headers } = await model.getServerWebSocketConfig();
  const socket = new WebSocket(url, { headers });
  const log = new Log();
  const send = (event) => socket.send(JSON.stringify(model.serializeClientEvent(event)));
  let said = '';
  socket.onmessage = ({ data }) => {
    for (const event of [model.parseServerEvent(JSON.parse(data))].flat()) {
      said += words(event) || '';
      log.add(event);
    }
  };
  await new Promise((go, no) => { socket.onopen = go; socket.onerror = no; });
  let at = 0;
  const until = async (holds) => {
    at = await log.until((event) => {
      assert(event.type !== 'error', JSON.stringify(event));
      return holds(event);
    }, at);
    return log.all[at];
  };
  await begin(send);
  await until((event) => event.type === ready);
  const microphone = new Microphone(RATE, (pcm) => send({ type: 'input-audio-append', audio: pcm.toString('base64') }));
  try {
    microphone.say(Buffer.concat([silence(3000, RATE), question(RATE, '', 'What time is it?')]));
    const call = await until(asked);
    microphone.say(Buffer.concat([silence(500, RATE), question(RATE, a.wav)]));
    await until(() => said.includes('My name is Parley.'));
    answer(send, call);
    await until(() => said.includes('fourteen thirty'));
    return said;
  } finally {
    microphone.stop();
    socket.close();
  }
}

await checks.run('live', () => askedTwice(
  provider.experimental_realtime('any', { api: 'live' }), 'session-started',
  (send) => send({ type: 'session-start', config: { instructions: 'Be brief.', providerOptions: { openai: { delegation: { type: 'client' } } } } }),
  (event) => event.type === 'delegation-created' && event.target === 'client',
  (event) => event.type === 'transcript-fragment' && event.delta,
  (send, { delegationId }) => send({ type: 'context-append', content: '14:30', delegationId, providerOptions: { openai: { channel: 'commentary' } } })), a.wait);
checks.exit();
