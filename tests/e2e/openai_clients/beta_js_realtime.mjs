// openai-realtime-api (npm), the port of OpenAI's beta reference client, in node: RealtimeClient. See common.mjs.
// Checks: text, manual, spoken, interrupt, tools
// An `error` event, or an event that the client cannot digest, fails any check.
import { RealtimeClient } from 'openai-realtime-api';
import { readFileSync } from 'node:fs';
import { args, assert, base, Checks, Log, Microphone, question, silence } from './common.mjs';

process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
const version = JSON.parse(readFileSync(new URL('./node_modules/openai-realtime-api/package.json', import.meta.url))).version;
const a = args();
const checks = new Checks('beta-js ' + version, a.only);
const RATE = 24000;
const pcm16 = (bytes) => new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));

async function session(config, body) {
  const sessionConfig = { instructions: 'Be brief.' };
  const client = new RealtimeClient({ url: base(a.url, 'ws') + '/realtime', apiKey: a.key, model: 'parley', debug: true, sessionConfig });
  const log = new Log();
  const problems = [];
  const { log: tell, error: complain } = console; // where the client tells of what it cannot digest, if `debug` is on
  console.log = () => {};
  console.error = (...what) => problems.push(what.slice(0, 2).join(' '));
  client.realtime.on('server.*', (e) => {
    // OpenAI may say that of a cancel after its own, and the client does not mind
    if (e.type === 'error' && e.error.code !== 'response_cancel_not_active') problems.push(JSON.stringify(e.error));
    log.add(e);
  });
  client.on('conversation.interrupted', () => log.add({ type: 'app.interrupted' }));
  client.on('conversation.updated', ({ item, delta }) => log.add({ type: 'app.updated', item, delta }));
  client.on('conversation.item.completed', ({ item }) => log.add({ type: 'app.completed', item }));
  const until = (likes, since) => log.until((e) => {
    if (problems.length) throw new Error(problems[0]);
    return typeof likes === 'string' ? e.type === likes : likes(e);
  }, since);
  try {
    client.updateSession(config);
    await client.connect();
    await client.waitForSessionCreated();
    const updated = log.all[await until('session.updated')].session;
    assert(updated.instructions === 'Be brief.' && updated.voice === 'alloy' && updated.input_audio_format === 'pcm16', JSON.stringify(updated));
    const result = await body({ client, log, until });
    assert(!problems.length, problems[0]);
    return result;
  } finally {
    client.disconnect();
    Object.assign(console, { log: tell, error: complain });
  }
}

const isAnswer = (e) => e.type === 'app.completed' && e.item.role === 'assistant';
const seconds = (item) => item.formatted.audio.length / RATE;
const tell = (item) => `'${item.formatted.transcript}', ${seconds(item).toFixed(1)} s`;
const answer = (item) => {
  assert(item.formatted.transcript && seconds(item) > 0.1, `no answer: ${item.formatted.transcript}`);
  return tell(item);
};

await checks.run('text', () => session({}, async ({ client, until, log }) => {
  const asked = client.waitForNextCompletedItem();
  client.sendUserMessageContent([{ type: 'input_text', text: 'What is your name?' }]);
  const first = await asked;
  assert(first.role === 'user' && first.formatted.text === 'What is your name?', JSON.stringify(first));
  const { item } = log.all[await until(isAnswer)];
  assert(client.conversation.getItems().map((i) => i.role).join(' ') === 'user assistant', 'items');
  const { response } = log.all[await until('response.done')];
  assert(response.status === 'completed' && response.usage.total_tokens > 0, JSON.stringify(response));
  return answer(item);
}), a.wait);

await checks.run('manual', () => session({ turn_detection: null }, async ({ client, until, log }) => {
  const speech = pcm16(question(RATE, a.wav));
  for (let at = 0; at < speech.length; at += RATE / 10) client.appendInputAudio(speech.slice(at, at + RATE / 10));
  client.createResponse(); // which commits
  const { item } = log.all[await until(isAnswer)];
  const [user] = client.conversation.getItems();
  assert(user.role === 'user' && user.formatted.audio.length === speech.length, 'the question is not in its item');
  return answer(item);
}), a.wait);

await checks.run('spoken', () => session({ turn_detection: { type: 'server_vad' } }, async ({ client, until, log }) => {
  const mic = new Microphone(RATE, (pcm) => client.appendInputAudio(pcm16(pcm)));
  mic.say(Buffer.concat([silence(500, RATE), question(RATE, a.wav)]));
  try {
    const { item } = log.all[await until(isAnswer)];
    const [user, assistant] = client.conversation.getItems();
    assert(user.role === 'user' && assistant === item, 'items');
    assert(user.formatted.audio.length > RATE / 2, `${user.formatted.audio.length} samples of the question`);
    return answer(item);
  } finally { mic.stop(); }
}), a.wait);

await checks.run('interrupt', async () => {
  await session({ turn_detection: { type: 'server_vad', silence_duration_ms: 300 } }, async ({ client, until, log }) => { // by the user
    const mic = new Microphone(RATE, (pcm) => client.appendInputAudio(pcm16(pcm)), 50);
    mic.say(Buffer.concat([silence(300, RATE), question(RATE, a.wav)]));
    try {
      const sound = await until((e) => e.type === 'app.updated' && e.delta?.audio);
      mic.say(question(RATE, a.wav));
      const at = await until('app.interrupted', sound);
      const { response } = log.all[await until('response.done')];
      assert(response.status === 'cancelled' && response.status_details.reason === 'turn_detected', JSON.stringify(response));
      client.cancelResponse(log.all[sound].item.id, RATE / 10); // as OpenAI's console does when it is told of an interruption
      const cut = log.all[await until('conversation.item.truncated', at)];
      assert(cut.audio_end_ms === 100 && log.all[sound].item.formatted.audio.length === RATE / 10, JSON.stringify(cut));
      await until(isAnswer, at);
    } finally { mic.stop(); }
  });
  return session({}, async ({ client, until, log }) => { // by the application
    client.sendUserMessageContent([{ type: 'input_text', text: 'Tell me a long story.' }]);
    const sound = await until((e) => e.type === 'app.updated' && e.delta?.audio);
    client.cancelResponse(log.all[sound].item.id, RATE / 20);
    const done = await until('response.done');
    await until('conversation.item.truncated');
    client.sendUserMessageContent([{ type: 'input_text', text: 'And now?' }]); // and it goes on
    await until('response.done', await until(isAnswer, done + 1));
    return `turn_detected; cancelResponse(): ${log.all[done].response.status}`;
  });
}, 2 * a.wait);

await checks.run('tools', () => session({ tool_choice: 'required' }, async ({ client, until, log }) => {
  const asked = [];
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
  client.addTool({ name: 'get_weather', description: 'Weather in a city', parameters }, ({ city }) => {
    asked.push(city);
    client.updateSession({ tool_choice: 'none' });
    return { weather: 'sunny' };
  });
  client.sendUserMessageContent([{ type: 'input_text', text: 'What is the weather in Paris?' }]);
  const { item } = log.all[await until(isAnswer)];
  assert(asked.length === 1, `${asked.length} calls`);
  const items = client.conversation.getItems();
  const kinds = items.map((i) => i.role ?? i.type).join(' ');
  assert(kinds === 'user function_call function_call_output assistant', kinds);
  assert(items[1].formatted.tool.name === 'get_weather' && JSON.parse(items[1].formatted.tool.arguments).city === asked[0], JSON.stringify(items[1]));
  assert(items[2].formatted.output === '{"weather":"sunny"}', JSON.stringify(items[2]));
  return `get_weather('${asked[0]}') then ${answer(item)}`;
}), a.wait);
checks.exit();
