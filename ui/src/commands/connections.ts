// External connections: channels, inbound webhooks, exporters, peers. Each command shows the new state and
// offers an undo where the gateway has one.
import { send } from "~/api/client";
import type {
  ExporterChangeBody,
  HookChange,
  NewExporterBody,
  NewHookBody,
  NewPeerBody,
  WebhookBody,
} from "~/protocol/openapi";
import { andRefetch, type Refused, runCommand } from "./session";

const OUT = ["/v1/webhooks/out"];
const IN = ["/v1/webhooks/in"];
const EXPORTERS = ["/v1/exporters"];
const RULES = ["/v1/alert-rules", "/v1/alerts"];
const PEERS = ["/v1/peers", "/v1/audit/log"];

export function makeChannel(body: WebhookBody, refused?: Refused) {
  return andRefetch(
    OUT,
    runCommand(
      "Creating the channel",
      () => send("POST /v1/webhooks/out", { body }),
      () => ({ text: `“${body.name}” receives notifications from now on.` }),
      refused,
    ),
  );
}

export function changeChannel(endpoint_id: string, body: WebhookBody, was: string | null, refused?: Refused) {
  return andRefetch(
    OUT,
    runCommand(
      "Saving the channel",
      () => send("PUT /v1/webhooks/out/{endpoint_id}", { params: { endpoint_id }, body: { ...body, was } }),
      () => ({ text: `“${body.name}” is saved; pending deliveries use its new destination.` }),
      refused,
    ),
  );
}

export function switchChannel(endpoint_id: string, name: string, on: boolean): Promise<unknown> {
  const route = on
    ? "POST /v1/webhooks/out/{endpoint_id}/enable"
    : "POST /v1/webhooks/out/{endpoint_id}/disable";
  return andRefetch(
    OUT,
    runCommand(
      on ? "Enabling" : "Disabling",
      () => send(route, { params: { endpoint_id } }),
      () => ({
        text: on
          ? `“${name}” receives notifications again.`
          : `“${name}” is disabled; nothing is sent to it.`,
        undo: () => switchChannel(endpoint_id, name, !on),
      }),
    ),
  );
}

export function rotateChannel(endpoint_id: string, overlap_s: number) {
  return andRefetch(
    OUT,
    runCommand(
      "Rotating the secret",
      () =>
        send("POST /v1/webhooks/out/{endpoint_id}/rotate", { params: { endpoint_id }, body: { overlap_s } }),
      () => ({ text: "New secret created. Configure it at the receiver before the old one expires." }),
    ),
  );
}

export function removeChannel(endpoint_id: string, name: string) {
  return andRefetch(
    [...OUT, ...RULES],
    runCommand(
      "Removing the channel",
      () => send("DELETE /v1/webhooks/out/{endpoint_id}", { params: { endpoint_id } }),
      () => ({ text: `“${name}” is removed; its delivery log is kept.` }),
    ),
  );
}

export function makeHook(body: NewHookBody, refused?: Refused) {
  return andRefetch(
    IN,
    runCommand(
      "Creating the webhook",
      () => send("POST /v1/webhooks/in", { body }),
      () => ({ text: `“${body.name}” is ready. Give its URL and secret to the caller.` }),
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
  return andRefetch(
    IN,
    runCommand(
      "Saving the webhook",
      () => send("PATCH /v1/webhooks/in/{hook_id}", { params: { hook_id }, body }),
      () => ({
        text,
        undo: body.state
          ? () => changeHook(hook_id, { state: body.state === "active" ? "disabled" : "active" }, "Restored.")
          : undefined,
      }),
      refused,
    ),
  );
}

export function rotateHook(hook_id: string, overlap_s: number) {
  return andRefetch(
    IN,
    runCommand(
      "Rotating the secret",
      () => send("POST /v1/webhooks/in/{hook_id}/rotate", { params: { hook_id }, body: { overlap_s } }),
      () => ({ text: "New secret created. Configure it at the caller before the old one expires." }),
    ),
  );
}

export function removeHook(hook_id: string, name: string) {
  return andRefetch(
    IN,
    runCommand(
      "Removing the webhook",
      () => send("DELETE /v1/webhooks/in/{hook_id}", { params: { hook_id } }),
      () => ({ text: `“${name}” is removed: calls to its URL return 404.` }),
    ),
  );
}

export function makeExporter(body: NewExporterBody, refused?: Refused) {
  return andRefetch(
    EXPORTERS,
    runCommand(
      "Creating the exporter",
      () => send("POST /v1/exporters", { body }),
      () => ({ text: `“${body.name}” is exporting events.` }),
      refused,
    ),
  );
}

export function changeExporter(exporter_id: string, body: ExporterChangeBody, refused?: Refused) {
  return andRefetch(
    EXPORTERS,
    runCommand(
      "Saving the exporter",
      () => send("PATCH /v1/exporters/{exporter_id}", { params: { exporter_id }, body }),
      () => ({ text: "Exporter saved; the new settings apply now." }),
      refused,
    ),
  );
}

export function pauseExporter(exporter_id: string, name: string, halt: boolean): Promise<unknown> {
  const route = halt ? "POST /v1/exporters/{exporter_id}/pause" : "POST /v1/exporters/{exporter_id}/resume";
  return andRefetch(
    EXPORTERS,
    runCommand(
      halt ? "Pausing" : "Resuming",
      () => send(route, { params: { exporter_id } }),
      () => ({
        text: halt ? `“${name}” is paused; no events are lost.` : `“${name}” resumed from its cursor.`,
        undo: () => pauseExporter(exporter_id, name, !halt),
      }),
    ),
  );
}

export function rewindExporter(exporter_id: string, to: number, refused?: Refused) {
  return andRefetch(
    EXPORTERS,
    runCommand(
      "Moving the exporter",
      () => send("POST /v1/exporters/{exporter_id}/rewind", { params: { exporter_id }, body: { to } }),
      () => ({ text: `The next event exported is number ${to}.` }),
      refused,
    ),
  );
}

export function removeExporter(exporter_id: string, name: string) {
  return andRefetch(
    EXPORTERS,
    runCommand(
      "Removing the exporter",
      () => send("DELETE /v1/exporters/{exporter_id}", { params: { exporter_id } }),
      () => ({ text: `“${name}” is removed; nothing more is exported to it.` }),
    ),
  );
}

export function addPeer(body: NewPeerBody, refused?: Refused) {
  return andRefetch(
    PEERS,
    runCommand(
      "Adding the peer",
      () => send("POST /v1/peers", { body }),
      () => ({ text: `“${body.name}” added: new checkpoints are submitted to it.` }),
      refused,
    ),
  );
}

export function submitCheckpoint(peer_id: string, name: string) {
  return andRefetch(
    PEERS,
    runCommand(
      "Submitting the checkpoint",
      () => send("POST /v1/peers/{peer_id}/offer", { params: { peer_id } }),
      ({ asked, cosigned_size }) => ({
        text:
          asked.state === "cosigned"
            ? `“${name}” cosigned ${cosigned_size ?? "our"} events.`
            : `“${name}” answered: ${asked.state}${asked.detail ? `, ${asked.detail}` : ""}.`,
      }),
    ),
  );
}

export function changePeerKey(peer_id: string, vkey: string, refused?: Refused) {
  return andRefetch(
    PEERS,
    runCommand(
      "Changing the key",
      () => send("POST /v1/peers/{peer_id}/key", { params: { peer_id }, body: { vkey } }),
      () => ({ text: "The new key is trusted from now on; the last known tree head is kept." }),
      refused,
    ),
  );
}

export function removePeer(peer_id: string, name: string) {
  return andRefetch(
    PEERS,
    runCommand(
      "Removing the peer",
      () => send("DELETE /v1/peers/{peer_id}", { params: { peer_id } }),
      () => ({ text: `“${name}” removed. Its cosignatures are kept.` }),
    ),
  );
}
