/**
 * An agent that checks invoices and asks before it pays. Start a gateway first (`observatory serve`):
 *
 *     python tools/windows.py sdk          # builds sdk-ts/dist, once
 *     node sdk-ts/examples/agent.ts
 *
 * While it runs, act as the operator: `observatory pause SESSION clerk-1`, `unpause`, `inject`, `holds`, `approve`.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Agent, Denied } from "hypervisor-observatory";

const [name = "clerk-1", invoices = "50", session_id] = process.argv.slice(2);
const agent = new Agent(name, { agent_type: "clerk" });
await agent.listen({ timeout_s: 5 });
const session = agent.session(session_id ? { session_id } : {}); // a new one, or the continuation of an earlier one
console.log(`session ${session.session_id}`);

let total = 0;
for (let n = 1; n <= Number(invoices); n++) {
  await session.step(`Read invoice ${n}`, { cost: 0.001 }); // a paused agent waits here
  for (const prompt of session.prompts()) console.log(`${prompt.by} says: ${prompt.text}`);
  total += await session.tool("check_invoice", { invoice: n }, async (call) => {
    await sleep(100);
    call.output = "fine";
    return 100 * n;
  });
}

try {
  const order = { amount: total };
  const approval = await session.ask("Pay all invoices", {
    tool_call: "pay",
    tool_input: order,
    timeout_s: 3600,
  });
  console.log(`paid ${JSON.stringify(approval.tool_input)}`); // not `order`: a person may have edited it
} catch (no) {
  if (!(no instanceof Denied)) throw no;
  console.log(`not paid: ${no.reason} ${no.note ?? ""}`);
}
await session.step("Done", { terminal: true });
await agent.close();
