// Verifies a session's thoughts in the browser (rulings 37, 38): each record's content hash, its link to the
// previous one, the RFC 6962 root over all of them, and the session's genesis. As ledger/thoughts.py does,
// from what the gateway serves.
import type { ThoughtItem, ThoughtSessionItem } from "~/protocol/openapi";
import { type Json, jcs, jcsOfWords } from "./canonical";
import { Edge } from "./merkle";
import { bytesOf, hashOf, hashText, sha256 } from "./sha256";

export interface Thoughts {
  valid: boolean;
  records: number;
  /** Records whose content was shredded: their content hash is taken as given. */
  shredded: number;
  first_broken_index: number | null;
  sentence: string;
  root: string | null;
}

type Session = Pick<
  ThoughtSessionItem,
  | "session_id"
  | "caller"
  | "started_at"
  | "genesis"
  | "records"
  | "root"
  | "last_chain_hash"
  | "predecessor_chain_hash"
>;

const TYPES = ["plan", "analysis", "decision", "reflection"];

/** The input of `content_hash`: eleven members, in RFC 8785 order. */
export function contentText(item: ThoughtItem): string {
  const { record_id, session_id, task_id, index, type, content, author, created_at } = item;
  const { references, audit_event_ids, predecessor_chain_hash } = item;
  const names = { record_id, session_id, task_id, index, type, content, author, created_at };
  return jcsOfWords({ ...names, references, audit_event_ids, predecessor_chain_hash } as unknown as Json);
}

export function verifyThoughts(session: Session, items: readonly ThoughtItem[]): Thoughts {
  const { caller, session_id, started_at } = session;
  const edge = new Edge();
  const found: Thoughts = {
    valid: false,
    records: items.length,
    shredded: items.filter((item) => item.shredded_by !== null).length,
    first_broken_index: null,
    sentence: "",
    root: null,
  };
  const broken = (index: number, sentence: string): Thoughts => ({
    ...found,
    first_broken_index: index,
    sentence,
  });
  if (hashText(sha256(bytesOf(jcs({ caller, session_id, started_at })))) !== session.genesis)
    return broken(0, "The genesis is not the hash of this session's starter and start time.");
  let previous = session.genesis;
  for (const [index, item] of items.entries()) {
    const sentence = breakOf(item, index, session, previous);
    if (sentence) return broken(index, sentence);
    const leaf = new Uint8Array(65);
    leaf.set(hashOf(item.content_hash) as Uint8Array, 1);
    leaf.set(hashOf(item.chain_hash) as Uint8Array, 33);
    edge.append(sha256(leaf));
    previous = item.chain_hash;
  }
  if (items.length !== session.records || previous !== session.last_chain_hash)
    return broken(
      items.length,
      `The session has ${session.records} records, but ${items.length} were served and they end elsewhere.`,
    );
  const root = items.length > 0 ? hashText(edge.root()) : null;
  if (session.root !== null && session.root !== root)
    return broken(items.length, "The root over these records is not the sealed one.");
  const words = found.shredded ? ` The content of ${found.shredded} was shredded; their hashes remain.` : "";
  const sealed = session.root ? " The root over them is the sealed one." : " The session is not sealed yet.";
  return { ...found, valid: true, root, sentence: `Every record and every link held.${sealed}${words}` };
}

function breakOf(item: ThoughtItem, index: number, session: Session, previous: string): string | null {
  if (item.index !== index || item.session_id !== session.session_id || !TYPES.includes(item.type))
    return `Record ${index} is out of order.`;
  if (item.predecessor_chain_hash !== (index === 0 ? session.predecessor_chain_hash : null))
    return `Record ${index} names a predecessor other than its session.`;
  const content = hashOf(item.content_hash);
  const parent = hashOf(previous);
  if (!content || !parent || !hashOf(item.chain_hash)) return `Record ${index} carries no hash.`;
  try {
    if (item.shredded_by === null && hashText(sha256(bytesOf(contentText(item)))) !== item.content_hash)
      return `content_hash of record ${index} is not the hash of its content.`;
  } catch {
    return `Record ${index} holds values that no record may hold.`;
  }
  if (item.parent_chain_hash !== previous) return `Record ${index} is not linked to the previous one.`;
  const link = new Uint8Array(64);
  link.set(content);
  link.set(parent, 32);
  if (hashText(sha256(link)) !== item.chain_hash)
    return `chain_hash of record ${index} does not match its content and the previous record.`;
  return null;
}
