// Parses JSON inside JSON strings for reading and editing, and serialises it back: an agent's tool input is a
// string that contains JSON. Unedited parts keep their exact text. Pure.

type Message = Record<string, unknown>;
const TEXTS = ["tool_input", "tool_output"] as const;

function actionOf(message: Message): Message | null {
  const { action } = message;
  return action && typeof action === "object" && !Array.isArray(action) ? (action as Message) : null;
}

function inside(text: unknown): object | null {
  if (typeof text !== "string" || !/^\s*[[{]/.test(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

export function opened(message: Message): Message {
  const action = actionOf(message);
  if (!action) return message;
  const shown: Message = { ...action };
  for (const name of TEXTS) shown[name] = inside(action[name]) ?? action[name];
  for (const name of TEXTS) if (!(name in action)) delete shown[name];
  return { ...message, action: shown };
}

/**
 * `edited` with its strings serialised again; `original` says which were strings and how they were written.
 */
export function closed(edited: Message, original: Message): Message {
  const action = actionOf(edited);
  const before = actionOf(original);
  if (!action || !before) return edited;
  const kept: Message = { ...action };
  for (const name of TEXTS) {
    const was = inside(before[name]);
    const now = action[name];
    if (was === null || now === null || typeof now !== "object") continue;
    kept[name] = JSON.stringify(now) === JSON.stringify(was) ? before[name] : JSON.stringify(now);
  }
  return { ...edited, action: kept };
}
