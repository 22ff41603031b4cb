// Proofs computed from tiles: no ready-made proof is requested, so a server can only serve hashes that give
// the signed root or hashes that do not.
import {
  climb,
  consistencyPath,
  type Hash,
  inclusionPath,
  isConsistent,
  places,
  type Range,
  rangeHash,
  widthOf,
} from "./merkle";
import type { Checkpoint } from "./note";
import { same } from "./sha256";
import type { Source } from "./source";

export class BadTree extends Error {}

export interface PathPart {
  /** The leaves the sibling covers, and its side of the path. */
  range: Range;
  side: "left" | "right";
  sibling: Hash;
  node: Hash;
}

/** All tiles needed for these ranges, fetched once each. */
async function tilesFor(source: Source, tenant: string, ranges: readonly Range[], size: number) {
  const wanted = new Map<string, { level: number; tile: number }>();
  for (const { level, tile } of ranges.flatMap(places)) wanted.set(`${level}/${tile}`, { level, tile });
  const got = new Map<string, Uint8Array>();
  await Promise.all(
    [...wanted].map(async ([name, { level, tile }]) => {
      got.set(name, await source.tile(tenant, level, tile, widthOf(level, tile, size)));
    }),
  );
  const read = (level: number, tile: number) => got.get(`${level}/${tile}`) ?? new Uint8Array();
  return { read, count: got.size };
}

function hashesOf(ranges: readonly Range[], read: (level: number, tile: number) => Uint8Array): Hash[] {
  return ranges.map((range) => {
    const hash = rangeHash(range, read);
    if (!hash) throw new BadTree("A tile of the log is shorter than the signed size requires.");
    return hash;
  });
}

/** From a leaf to the signed root; throws `BadTree` when it does not lead there. */
export async function pathFromTiles(
  source: Source,
  tenant: string,
  leaf: Hash,
  index: number,
  checkpoint: Checkpoint,
): Promise<{ parts: PathPart[]; tiles: number }> {
  const ranges = inclusionPath(index, checkpoint.size);
  const { read, count } = await tilesFor(source, tenant, ranges, checkpoint.size);
  const siblings = hashesOf(ranges, read);
  const nodes = climb(leaf, index, checkpoint.size, siblings);
  if (!nodes || !same(nodes.at(-1) as Hash, checkpoint.root))
    throw new BadTree(
      `With the log's own tiles this record does not lead to the root signed over ${checkpoint.size.toLocaleString("en")} entries.`,
    );
  const parts = ranges.map(
    (range, n): PathPart => ({
      range,
      side: range[0] > index ? "right" : "left",
      sibling: siblings[n] as Hash,
      node: nodes[n + 1] as Hash,
    }),
  );
  return { parts, tiles: count };
}

/** Whether the log of this checkpoint extends an older one; throws `BadTree` if not. */
export async function goesOnFrom(
  source: Source,
  tenant: string,
  older: Checkpoint,
  newer: Checkpoint,
): Promise<void> {
  const sizes = `${older.size.toLocaleString("en")} entries`;
  if (older.size > newer.size)
    throw new BadTree(`This browser has seen ${sizes} signed; now the log has fewer. It was rolled back.`);
  if (older.size === 0) return;
  const ranges = older.size === newer.size ? [] : consistencyPath(older.size, newer.size);
  const { read } = await tilesFor(source, tenant, ranges, newer.size);
  if (!isConsistent(older.size, newer.size, older.root, newer.root, hashesOf(ranges, read)))
    throw new BadTree(
      `The log does not extend the ${sizes} this browser saw signed. There are two histories.`,
    );
}
