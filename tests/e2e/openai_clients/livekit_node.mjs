// @livekit/agents with @livekit/agents-plugin-openai (npm): its LLM over chat completions, and its RealtimeModel, with a tool that is chosen by name. See common.mjs.
// Checks: tools, chosen, realtime_tools
import { initializeLogger, llm } from '@livekit/agents';
import * as openai from '@livekit/agents-plugin-openai';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { args, assert, base, Checks } from './common.mjs';

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
checks.exit();
