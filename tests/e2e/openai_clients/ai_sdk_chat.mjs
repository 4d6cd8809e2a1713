// ai (npm) with @ai-sdk/openai and @ai-sdk/openai-compatible: tools and structured output over chat completions. See common.mjs.
// Checks: openai_tools, openai_output, compatible_tools, compatible_output, compatible_stream
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { args, assert, base, Checks } from './common.mjs';

const a = args();
const version = JSON.parse(readFileSync(new URL('./node_modules/ai/package.json', import.meta.url))).version;
const checks = new Checks('ai ' + version, a.only);
const baseURL = base(a.url, 'http');
const models = {
  openai: createOpenAI({ baseURL, apiKey: a.key }).chat('any'),
  compatible: createOpenAICompatible({ name: 'parley', baseURL, apiKey: a.key, supportsStructuredOutputs: true }).chatModel('any'),
};
const prompt = 'What is the weather in Paris?';

function weather() {
  const cities = [];
  const get_weather = tool({
    description: 'Weather of a city', inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => { cities.push(city); return 'sunny, 18 degrees'; },
  });
  return { cities, with: { tools: { get_weather }, stopWhen: stepCountIs(3), temperature: 0, maxRetries: 0 } };
}

function said(text, cities) {
  assert(cities.join() === 'Paris' && text.includes('sunny'), `${cities}: ${text}`);
  return text;
}

for (const [name, model] of Object.entries(models)) {
  await checks.run(name + '_tools', async () => {
    const tools = weather();
    return said((await generateText({ model, prompt, ...tools.with })).text, tools.cities);
  }, a.wait);
  await checks.run(name + '_output', async () => {
    const schema = z.object({ text: z.string(), sure: z.boolean() });
    const { output } = await generateText({ model, prompt: 'What is your name?', output: Output.object({ schema }), maxOutputTokens: 200, maxRetries: 0 });
    assert(schema.safeParse(output).success, JSON.stringify(output));
  }, a.wait);
}
await checks.run('compatible_stream', async () => {
  const tools = weather();
  const stream = streamText({ model: models.compatible, prompt, ...tools.with });
  let text = '';
  for await (const piece of stream.textStream) text += piece;
  return said(text, tools.cities);
}, a.wait);
checks.exit();
