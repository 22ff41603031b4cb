// An agent of the TypeScript SDK in a Node process of its own, led by a test: one line of JSON in is one act
// ({id, js}), one line out is what came of it ({id, value} or {id, error}). `here` is what acts share.
import { createInterface } from "node:readline";

const [built, name, options] = process.argv.slice(2);
const sdk = await import(built);
const logged = [];
const here = {};
const agent = new sdk.Agent(name, { ...JSON.parse(options), log: (level, text) => logged.push([level, text]) });
const AsyncFunction = (async () => {}).constructor;

async function act({ id, js }) {
  let told;
  try {
    const value = await new AsyncFunction("agent", "sdk", "here", "logged", js)(agent, sdk, here, logged);
    told = { id, value: value ?? null };
  } catch (error) {
    const { name, message, reason, note, by, code, faults } = error;
    told = { id, error: { name, message, reason, note, by, code, faults } };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

for await (const line of createInterface({ input: process.stdin })) void act(JSON.parse(line));
