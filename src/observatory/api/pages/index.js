// The page before the web UI: who is signed in, and committed rows as they come.
"use strict";
const rows = document.getElementById("rows");
const who = document.getElementById("who");

function show(item) {
  const log = item.message || {};
  const action = log.action || {};
  const row = rows.insertRow(0);
  const agent = (log.identity || {}).agent_id || ((log.sender || {}).entity_id) || "";
  const intent = (log.cognition || {}).intent || item.message_type;
  const outcome = [action.tool_call, action.status].filter(Boolean).join(" · ");
  for (const text of [item.sequence_number, item.state, "…" + item.session_id.slice(-8), agent, intent, outcome]) {
    row.insertCell().textContent = text;
  }
  while (rows.rows.length > 50) rows.deleteRow(-1);
}

function listen(after) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/v1/live`);
  let cursor = after;
  socket.onopen = () => socket.send(JSON.stringify({ op: "subscribe", topics: ["messages"], after: cursor }));
  socket.onmessage = (event) => {
    const frame = JSON.parse(event.data);
    if (typeof frame.seq === "number") cursor = frame.seq;
    for (const item of frame.items || []) show(item);
  };
  socket.onclose = () => setTimeout(() => listen(cursor), 2000);
}

async function start() {
  const me = await fetch("/v1/whoami");
  if (!me.ok) {
    who.textContent = "You are not signed in. Run `observatory login` and open the link it prints.";
    return;
  }
  const { role, tenant_id } = await me.json();
  who.textContent = `Signed in as ${role} of ${tenant_id}.`;
  const page = await (await fetch("/v1/messages?limit=25")).json();
  for (const item of page.items.slice().reverse()) show(item);
  listen(page.items.length ? page.items[0].sequence_number : 0);
}
start();
