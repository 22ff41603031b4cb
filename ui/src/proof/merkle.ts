// RFC 6962 trees and C2SP tiles, the reading side. Functions come in pairs: which subtrees a proof needs, as
// half-open ranges of leaves, and how their hashes combine (RFC 9162 §2.1.3.2, §2.1.4.2).
import { digestInto, same, sha256 } from "./sha256";

export type Hash = Uint8Array;
export type Range = readonly [start: number, end: number];
export const TILE = 256;

const pair = new Uint8Array(65);
pair[0] = 1;

export function nodeHash(left: Hash, right: Hash): Hash {
  pair.set(left, 1);
  pair.set(right, 33);
  return sha256(pair);
}

/** The largest power of two smaller than `size`; sizes go beyond 32 bits. */
function split(size: number): number {
  let power = 1;
  while (power * 2 < size) power *= 2;
  return power;
}

/** Subtrees of PATH(index, D[size]), RFC 6962 §2.1.1, nearest the leaf first. */
export function inclusionPath(index: number, size: number): Range[] {
  if (!(index >= 0 && index < size)) throw new RangeError("leaf index out of range");
  let [start, end] = [0, size];
  const path: Range[] = [];
  while (end - start > 1) {
    const middle = start + split(end - start);
    if (index < middle) {
      path.unshift([middle, end]);
      end = middle;
    } else {
      path.unshift([start, middle]);
      start = middle;
    }
  }
  return path;
}

/** Subtrees of PROOF(old, D[size]), RFC 6962 §2.1.2. */
export function consistencyPath(old: number, size: number): Range[] {
  if (!(old > 0 && old <= size))
    throw new RangeError("consistency needs an old size between 1 and the new size");
  let [start, end] = [0, size];
  const path: Range[] = [];
  while (old !== end) {
    const middle = start + split(end - start);
    if (old <= middle) {
      path.unshift([middle, end]);
      end = middle;
    } else {
      path.unshift([start, middle]);
      start = middle;
    }
  }
  if (start) path.unshift([start, end]);
  return path;
}

/** The hashes from a leaf up to the root, the leaf's own first; null when the proof is too long or too short. */
export function climb(leaf: Hash, index: number, size: number, proof: readonly Hash[]): Hash[] | null {
  if (!(index >= 0 && index < size)) return null;
  let [fn, sn, node] = [index, size - 1, leaf];
  const passed = [leaf];
  for (const sibling of proof) {
    if (sn === 0 || sibling.length !== 32) return null;
    if (fn % 2 === 1 || fn === sn) {
      node = nodeHash(sibling, node);
      while (fn > 0 && fn % 2 === 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else node = nodeHash(node, sibling);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    passed.push(node);
  }
  return sn === 0 ? passed : null;
}

export function isConsistent(
  old: number,
  size: number,
  oldRoot: Hash,
  root: Hash,
  proof: readonly Hash[],
): boolean {
  if (!(old > 0 && old <= size)) return false;
  if (old === size) return proof.length === 0 && same(oldRoot, root);
  // A power of two: the old root is itself the first hash.
  const path = Math.log2(old) % 1 === 0 ? [oldRoot, ...proof] : [...proof];
  const begin = path.shift();
  if (!begin) return false;
  let [fn, sn] = [old - 1, size - 1];
  while (fn % 2 === 1) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  let [first, second] = [begin, begin];
  for (const sibling of path) {
    if (sn === 0 || sibling.length !== 32) return false;
    if (fn % 2 === 1 || fn === sn) {
      [first, second] = [nodeHash(sibling, first), nodeHash(sibling, second)];
      while (fn > 0 && fn % 2 === 0) [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
    } else second = nodeHash(second, sibling);
    [fn, sn] = [Math.floor(fn / 2), Math.floor(sn / 2)];
  }
  return sn === 0 && same(first, oldRoot) && same(second, root);
}

/** The tree's right edge over appended leaves: one hash for each set bit of its size. */
export class Edge {
  size = 0;
  private readonly peaks: Hash[] = [];
  private readonly pair = new Uint8Array(65).fill(1, 0, 1);

  append(leaf: Hash): void {
    let node = leaf;
    for (let carry = this.size; carry % 2 === 1; carry = Math.floor(carry / 2)) {
      this.pair.set(this.peaks.pop() as Hash, 1);
      this.pair.set(node, 33);
      const above = new Uint8Array(32);
      digestInto(this.pair, 0, 65, above, 0);
      node = above;
    }
    this.peaks.push(node);
    this.size += 1;
  }

  root(): Hash {
    const last = this.peaks.at(-1);
    if (!last) return sha256(new Uint8Array());
    return this.peaks.slice(0, -1).reduceRight((node, left) => nodeHash(left, node), last);
  }
}

export interface TilePosition {
  level: number;
  tile: number;
  offset: number;
  count: number;
}

/** The tile positions of the whole subtrees of a range, left to right. */
export function places([start, end]: Range): TilePosition[] {
  const found: TilePosition[] = [];
  let at = start;
  while (at < end) {
    let bits = 0;
    while (2 ** (bits + 1) <= end - at && at % 2 ** (bits + 1) === 0) bits += 1;
    const level = Math.floor(bits / 8);
    const position = at / TILE ** level;
    const tile = Math.floor(position / TILE);
    found.push({ level, tile, offset: position - tile * TILE, count: 2 ** (bits % 8) });
    at += 2 ** bits;
  }
  return found;
}

/** The number of hashes in a tile of a log of this size. */
export function widthOf(level: number, tile: number, size: number): number {
  return Math.max(0, Math.min(TILE, Math.floor(size / TILE ** level) - tile * TILE));
}

/** C2SP's name of a tile, below the log's address. */
export function tilePath(level: number | "entries", tile: number, width: number): string {
  const groups = [String(tile % 1000).padStart(3, "0")];
  for (let rest = Math.floor(tile / 1000); rest > 0; rest = Math.floor(rest / 1000))
    groups.unshift(`x${String(rest % 1000).padStart(3, "0")}`);
  return `tile/${level}/${groups.join("/")}${width === TILE ? "" : `.p/${width}`}`;
}

export type Tile = (level: number, tile: number) => Uint8Array;

/** The hash over a range, from tiles; null if one of them is too short. */
export function rangeHash(range: Range, tile: Tile): Hash | null {
  let node: Hash | null = null;
  for (const { level, tile: index, offset, count } of places(range).reverse()) {
    const bytes = tile(level, index);
    let layer: Hash[] = [];
    for (let n = offset; n < offset + count; n++) layer.push(bytes.slice(32 * n, 32 * n + 32));
    if (layer.some((one) => one.length !== 32)) return null;
    while (layer.length > 1)
      layer = Array.from({ length: layer.length / 2 }, (_, n) =>
        nodeHash(layer[2 * n] as Hash, layer[2 * n + 1] as Hash),
      );
    const left = layer[0] as Hash;
    node = node === null ? left : nodeHash(left, node);
  }
  return node;
}
