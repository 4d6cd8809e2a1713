// @livekit/agents with @livekit/agents-plugin-openai (npm): its LLM over chat completions; its RealtimeModel, with a tool that is chosen by name; a
// whole AgentSession of GPTLiveModel, without a room, with a tool that is asked for by voice. See common.mjs.
// Checks: tools, chosen, realtime_tools, live_tools
import { initializeLogger, llm, voice } from '@livekit/agents';
import * as openai from '@livekit/agents-plugin-openai';
import { AudioFrame } from '@livekit/rtc-node';
import { readFileSync } from 'node:fs';
import { ReadableStream } from 'node:stream/web';
import { z } from 'zod';
import { args, assert, base, Checks, Microphone, question, silence, sleep } from './common.mjs';

initializeLogger({ pretty: false, level: 'silent' });
const a = args();
const version = JSON.parse(readFileSync(new URL('./node_modules/@livekit/agents/package.json', import.meta.url))).version;
const checks = new Checks('@livekit/agents ' + version, a.only);
const model = new openai.LLM({ model: 'any', apiKey: a.key, baseURL: base(a.url, 'http'), temperature: 0 });
const get_weather = llm.tool({ name: 'get_weather', description: 'Weather of a city', parameters: z.object({ city: z.string() }), execute: async () => 'sunny, 18 degrees' });
const tools = new llm.ToolContext([get_weather]);

function talk() {
  const chatCtx = new llm.ChatContext();
  chatCtx.addMessage({ role: 'user', content: 'What is the weather in Paris?' });
  return chatCtx;
}

async function asked(chatCtx, more = {}) {
  let text = '';
  const calls = [];
  for await (const piece of model.chat({ chatCtx, toolCtx: tools, ...more })) {
    text += piece.delta?.content ?? '';
    calls.push(...(piece.delta?.toolCalls ?? []));
  }
  return { text, calls };
}

await checks.run('tools', async () => {
  const chatCtx = talk();
  const { calls } = await asked(chatCtx);
  assert(calls.length === 1 && JSON.parse(calls[0].args).city === 'Paris', JSON.stringify(calls));
  chatCtx.insert(calls[0]);
  chatCtx.insert(llm.FunctionCallOutput.create({ callId: calls[0].callId, name: 'get_weather', output: 'sunny, 18 degrees', isError: false }));
  const { text } = await asked(chatCtx);
  assert(text.includes('sunny'), text);
  return text;
}, a.wait);
await checks.run('chosen', async () => {
  const { calls } = await asked(talk(), { toolChoice: { type: 'function', function: { name: 'get_weather' } } });
  assert(calls[0]?.name === 'get_weather', JSON.stringify(calls));
}, a.wait);
await checks.run('realtime_tools', async () => {
  const realtime = new openai.realtime.RealtimeModel({ model: 'any', apiKey: a.key, baseURL: base(a.url, 'http'), modalities: ['text'], turnDetection: null });
  const session = realtime.session();
  let wrong;
  session.on('error', (event) => { wrong ??= event.error; });
  try {
    await session.updateTools(tools);
    session.updateOptions({ toolChoice: { type: 'function', function: { name: 'get_weather' } } }); // sent as a bare string
    await session.updateChatCtx(talk());
    const { functionStream } = await session.generateReply();
    const { value } = await functionStream.getReader().read();
    assert(!wrong, String(wrong));
    assert(value.name === 'get_weather' && JSON.parse(value.args).city === 'Paris', JSON.stringify(value));
  } finally {
    await session.close();
  }
}, a.wait);

const RATE = 24000;

class Ear extends voice.AudioInput {
  constructor() {
    super();
    this.multiStream.addInputStream(new ReadableStream({ start: (to) => { this.to = to; } }));
  }
  hear(pcm) { this.to.enqueue(new AudioFrame(new Int16Array(Uint8Array.from(pcm).buffer), RATE, 1, pcm.length / 2)); }
}

// The second question is answered while the function that the first one asks for is at work; then its result is told.
async function askedTwice(llmOfSession) {
  let asked = false, known;
  const time = new Promise((go) => { known = go; });
  const get_time = llm.tool({ name: 'get_time', description: 'Get the current time.', parameters: z.object({}), execute: async () => { asked = true; return time; } });
  const session = new voice.AgentSession({ llm: llmOfSession, aecWarmupDuration: null }); // else it is deaf at first
  const ear = new Ear(), said = [];
  let wrong;
  session.on('conversation_item_added', ({ item }) => { if (item.role === 'assistant') said.push(item.textContent); });
  session.on('error', ({ error }) => { wrong ??= error; });
  session.input.audio = ear;
  await session.start({ agent: new voice.Agent({ instructions: 'Be brief.', tools: [get_time] }), record: false });
  const microphone = new Microphone(RATE, (pcm) => ear.hear(pcm), 50);
  const until = async (holds) => { while (!holds()) await sleep(50); };
  try {
    microphone.say(Buffer.concat([silence(3000, RATE), question(RATE, '', 'What time is it?')]));
    await until(() => asked);
    microphone.say(Buffer.concat([silence(500, RATE), question(RATE, a.wav)]));
    await until(() => said.join(' ').includes('My name is Parley.'));
    known('14:30');
    await until(() => said.join(' ').includes('fourteen thirty'));
  } finally {
    microphone.stop();
    await session.close();
  }
  assert(!wrong, String(wrong?.message ?? wrong));
  return said.join(' ');
}

const where = { model: 'any', apiKey: a.key, baseURL: base(a.url, 'http') };
await checks.run('live_tools', () => askedTwice(new openai.realtime.GPTLiveModel(where)), a.wait);
checks.exit();
