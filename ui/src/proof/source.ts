// Where the bytes to verify come from: tiles, checkpoint and exact records, never a ready-made proof. `http`
// fetches them from the gateway; tests bring their own.
import { bytes, call, get } from "~/api/client";
import { tilePath } from "./merkle";

export interface Source {
  /** Exact bytes of events after a sequence number, one per line. */
  records(after: number, limit: number, signal?: AbortSignal): Promise<Uint8Array>;
  checkpoint(tenant: string): Promise<string>;
  /** The oldest checkpoint that includes this event; null while there is none. */
  checkpointOver(number: number): Promise<string | null>;
  tile(tenant: string, level: number, tile: number, width: number): Promise<Uint8Array>;
  /** The keys as the gateway reports them, oldest first. */
  keys(): Promise<{ tenant: string; keys: { vkey: string; since_sequence: number }[] }>;
  witnesses(): Promise<{ name: string; vkey: string }[]>;
}

export const http: Source = {
  records: (after, limit, signal) => bytes("/v1/audit/records", { query: { after, limit }, signal }),
  checkpoint: async (tenant) => {
    // `fresh` bypasses every cache: the comparison needs the present state.
    const path = `/v1/log/${encodeURIComponent(tenant)}/checkpoint`;
    return new TextDecoder().decode(await bytes(path, { query: { fresh: Date.now() } }));
  },
  checkpointOver: async (number) =>
    (await get("/v1/audit/checkpoints", { query: { over: number } })).items[0]?.checkpoint ?? null,
  tile: (tenant, level, tile, width) =>
    bytes(`/v1/log/${encodeURIComponent(tenant)}/${tilePath(level, tile, width)}`),
  keys: async () => {
    const auditLog = await get("/v1/audit/log");
    return { tenant: auditLog.tenant_id, keys: auditLog.vkeys };
  },
  witnesses: async () => {
    const { items } = await call<{ items: { name: string; witness_vkey: string }[] }>("GET", "/v1/peers");
    return items.map(({ name, witness_vkey }) => ({ name, vkey: witness_vkey }));
  },
};
