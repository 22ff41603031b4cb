// Completions for the piece being typed: filter names, and values known to be in the archive. Pure.
import { FIELDS, fieldOf, type Piece, piecesOf, written } from "./queryPieces";

export interface Completion {
  /** The displayed text and the value it stands for. */
  text: string;
  says: string;
  /** The whole query with it, and the cursor position. */
  question: string;
  cursor: number;
}

/** Known values by field: of facets, agents, clusters. */
export type Values = Readonly<Record<string, readonly string[]>>;

const MAX_COMPLETIONS = 8;

/** The piece the cursor stands in or behind. */
export function pieceAt(text: string, cursor: number): Piece | undefined {
  return piecesOf(text).find((piece) => piece.start < cursor && cursor <= piece.end);
}

export function completions(text: string, cursor: number, known: Values): Completion[] {
  const piece = pieceAt(text, cursor);
  if (piece?.quoted && text[cursor - 1] === '"' && piece.end === cursor) return [];
  if (piece?.sign === "~") return [];
  if (piece?.field) return valuesOf(text, piece, known);
  const typed = piece ? piece.text.toLowerCase() : "";
  if (piece?.quoted || (piece && typed === "")) return [];
  if (!piece && text.trim() !== "") return [];
  const start = piece?.start ?? cursor;
  const end = piece?.end ?? cursor;
  return FIELDS.filter((one) => one.name.startsWith(typed)).map((one) =>
    made(text, start, end, `${piece?.sign ?? ""}${one.name}:`, one.says, false),
  );
}

function valuesOf(text: string, piece: Piece, known: Values): Completion[] {
  const field = fieldOf(piece);
  if (!field) return [];
  // Of several values with commas between the last one is being typed.
  const comma = piece.quoted ? -1 : piece.text.lastIndexOf(",");
  const before = comma < 0 ? "" : piece.text.slice(0, comma + 1);
  const typed = piece.text.slice(comma + 1).toLowerCase();
  const all = field.values ?? known[field.name] ?? [];
  const begins = all.filter((value) => value.toLowerCase().startsWith(typed));
  const holds = typed === "" ? [] : all.filter((value) => value.toLowerCase().includes(typed));
  const found = [...new Set([...begins, ...holds])].filter((value) => value.toLowerCase() !== typed);
  return found.slice(0, MAX_COMPLETIONS).map((value) => {
    const completed = `${piece.sign}${piece.field}:${before}${written(value)}`;
    return made(text, piece.start, piece.end, completed, field.says, true);
  });
}

function made(
  text: string,
  start: number,
  end: number,
  said: string,
  says: string,
  done: boolean,
): Completion {
  const rest = text.slice(end);
  const put = done && !/^\s/.test(rest) ? `${said} ` : said;
  return { text: said, says, question: text.slice(0, start) + put + rest, cursor: start + put.length };
}
