// What connects the house with the outside: channels, hooks, exporters, peers. Each tells what is so from now on,
// and takes it back where the gateway can.
import { send } from "~/api/client";
import type {
  ExporterChangeBody,
  HookChange,
  NewExporterBody,
  NewHookBody,
  NewPeerBody,
  WebhookBody,
} from "~/protocol/openapi";
import { act, andAsk, type Refused } from "./acts";

const OUT = ["/v1/webhooks/out"];
const IN = ["/v1/webhooks/in"];
const EXPORTERS = ["/v1/exporters"];
const RULES = ["/v1/alert-rules", "/v1/alerts"];
const PEERS = ["/v1/peers", "/v1/audit/log"];

export function makeChannel(body: WebhookBody, refused?: Refused) {
  return andAsk(
    OUT,
    act(
      "Making the channel",
      () => send("POST /v1/webhooks/out", { body }),
      () => ({ text: `“${body.name}” is told of what happens from now on.` }),
      refused,
    ),
  );
}

export function changeChannel(endpoint_id: string, body: WebhookBody, was: string | null, refused?: Refused) {
  return andAsk(
    OUT,
    act(
      "Saving the channel",
      () => send("PUT /v1/webhooks/out/{endpoint_id}", { params: { endpoint_id }, body: { ...body, was } }),
      () => ({ text: `“${body.name}” is saved; what waits goes to where it lies now.` }),
      refused,
    ),
  );
}

export function switchChannel(endpoint_id: string, name: string, on: boolean): Promise<unknown> {
  const route = on
    ? "POST /v1/webhooks/out/{endpoint_id}/enable"
    : "POST /v1/webhooks/out/{endpoint_id}/disable";
  return andAsk(
    OUT,
    act(
      on ? "Enabling" : "Disabling",
      () => send(route, { params: { endpoint_id } }),
      () => ({
        text: on ? `“${name}” is told again, from now on.` : `Nothing is sent to “${name}” for now.`,
        undo: () => switchChannel(endpoint_id, name, !on),
      }),
    ),
  );
}

export function rotateChannel(endpoint_id: string, overlap_s: number) {
  return andAsk(
    OUT,
    act(
      "Rotating the secret",
      () =>
        send("POST /v1/webhooks/out/{endpoint_id}/rotate", { params: { endpoint_id }, body: { overlap_s } }),
      () => ({ text: "There is a new secret. Give it to the receiver before the old one ends." }),
    ),
  );
}

export function removeChannel(endpoint_id: string, name: string) {
  return andAsk(
    [...OUT, ...RULES],
    act(
      "Removing the channel",
      () => send("DELETE /v1/webhooks/out/{endpoint_id}", { params: { endpoint_id } }),
      () => ({ text: `“${name}” is removed; its log stays.` }),
    ),
  );
}

export function makeHook(body: NewHookBody, refused?: Refused) {
  return andAsk(
    IN,
    act(
      "Opening the hook",
      () => send("POST /v1/webhooks/in", { body }),
      () => ({ text: `“${body.name}” is open. Give its address and secret to the caller.` }),
      refused,
    ),
  );
}

export function changeHook(
  hook_id: string,
  body: HookChange,
  text: string,
  refused?: Refused,
): Promise<unknown> {
  return andAsk(
    IN,
    act(
      "Saving the hook",
      () => send("PATCH /v1/webhooks/in/{hook_id}", { params: { hook_id }, body }),
      () => ({
        text,
        undo: body.state
          ? () =>
              changeHook(
                hook_id,
                { state: body.state === "active" ? "disabled" : "active" },
                "As it was before.",
              )
          : undefined,
      }),
      refused,
    ),
  );
}

export function rotateHook(hook_id: string, overlap_s: number) {
  return andAsk(
    IN,
    act(
      "Rotating the secret",
      () => send("POST /v1/webhooks/in/{hook_id}/rotate", { params: { hook_id }, body: { overlap_s } }),
      () => ({ text: "There is a new secret. Give it to the caller before the old one ends." }),
    ),
  );
}

export function removeHook(hook_id: string, name: string) {
  return andAsk(
    IN,
    act(
      "Removing the hook",
      () => send("DELETE /v1/webhooks/in/{hook_id}", { params: { hook_id } }),
      () => ({ text: `“${name}” is closed: calls to its address are not found.` }),
    ),
  );
}

export function makeExporter(body: NewExporterBody, refused?: Refused) {
  return andAsk(
    EXPORTERS,
    act(
      "Making the exporter",
      () => send("POST /v1/exporters", { body }),
      () => ({ text: `“${body.name}” is sent the record's events.` }),
      refused,
    ),
  );
}

export function changeExporter(exporter_id: string, body: ExporterChangeBody, refused?: Refused) {
  return andAsk(
    EXPORTERS,
    act(
      "Saving the exporter",
      () => send("PATCH /v1/exporters/{exporter_id}", { params: { exporter_id }, body }),
      () => ({ text: "The exporter goes on with what you saved." }),
      refused,
    ),
  );
}

export function haltExporter(exporter_id: string, name: string, halt: boolean): Promise<unknown> {
  const route = halt ? "POST /v1/exporters/{exporter_id}/pause" : "POST /v1/exporters/{exporter_id}/resume";
  return andAsk(
    EXPORTERS,
    act(
      halt ? "Pausing" : "Resuming",
      () => send(route, { params: { exporter_id } }),
      () => ({
        text: halt ? `“${name}” waits; nothing is lost.` : `“${name}” goes on from where it was.`,
        undo: () => haltExporter(exporter_id, name, !halt),
      }),
    ),
  );
}

export function rewindExporter(exporter_id: string, to: number, refused?: Refused) {
  return andAsk(
    EXPORTERS,
    act(
      "Moving the exporter",
      () => send("POST /v1/exporters/{exporter_id}/rewind", { params: { exporter_id }, body: { to } }),
      () => ({ text: `The next event it sends is number ${to}.` }),
      refused,
    ),
  );
}

export function removeExporter(exporter_id: string, name: string) {
  return andAsk(
    EXPORTERS,
    act(
      "Removing the exporter",
      () => send("DELETE /v1/exporters/{exporter_id}", { params: { exporter_id } }),
      () => ({ text: `“${name}” is sent nothing more.` }),
    ),
  );
}

export function addPeer(body: NewPeerBody, refused?: Refused) {
  return andAsk(
    PEERS,
    act(
      "Adding the peer",
      () => send("POST /v1/peers", { body }),
      () => ({ text: `“${body.name}” is a peer: new checkpoints are offered to it.` }),
      refused,
    ),
  );
}

export function offerTo(peer_id: string, name: string) {
  return andAsk(
    PEERS,
    act(
      "Offering the checkpoint",
      () => send("POST /v1/peers/{peer_id}/offer", { params: { peer_id } }),
      ({ asked, cosigned_size }) => ({
        text:
          asked.state === "cosigned"
            ? `“${name}” cosigned ${cosigned_size ?? "our"} events.`
            : `“${name}” was asked: ${asked.state}${asked.detail ? `, ${asked.detail}` : ""}.`,
      }),
    ),
  );
}

export function changePeerKey(peer_id: string, vkey: string, refused?: Refused) {
  return andAsk(
    PEERS,
    act(
      "Changing the key",
      () => send("POST /v1/peers/{peer_id}/key", { params: { peer_id }, body: { vkey } }),
      () => ({ text: "The new key is believed from now on; the head it must go on from stays." }),
      refused,
    ),
  );
}

export function removePeer(peer_id: string, name: string) {
  return andAsk(
    PEERS,
    act(
      "Removing the peer",
      () => send("DELETE /v1/peers/{peer_id}", { params: { peer_id } }),
      () => ({ text: `“${name}” is asked no more. What it cosigned stays.` }),
    ),
  );
}
