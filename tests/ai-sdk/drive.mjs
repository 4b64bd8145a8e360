// Drives kontekst's OpenAI-compatible endpoints with Vercel's AI SDK: drive.mjs BASE_URL TOKEN.
// Needs the packages that .ci/run installs; PACKAGES says in which directory.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [baseURL, apiKey] = process.argv.slice(2);
const require = createRequire(join(process.env.PACKAGES ?? process.cwd(), "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { generateObject, generateText, tool } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { z } = await load("zod");

const provider = createOpenAICompatible({ name: "kontekst", baseURL, apiKey, supportsStructuredOutputs: true });
const model = provider("default");
const common = { model, maxRetries: 0 };

const schema = z.object({ name: z.string(), age: z.number() });
const { object } = await generateObject({ ...common, schema, prompt: "Who is it?" });
assert.deepEqual(object, { name: "Ada", age: 36 });

const stopped = await generateText({ ...common, prompt: "hi", stopSequences: ["END"] });
assert.equal(stopped.text, "Hello world");

const tools = { get_weather: tool({ description: "The weather in a city", inputSchema: z.object({ city: z.string() }) }) };
for (const toolChoice of ["required", { type: "tool", toolName: "get_weather" }]) {
  const { toolCalls } = await generateText({ ...common, prompt: "weather?", tools, toolChoice });
  assert.deepEqual(toolCalls.map((call) => call.input), [{ city: "Bern" }]);
}
console.log("all good");
