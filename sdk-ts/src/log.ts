/** What the SDK tells whoever runs the agent. Never a key, never a payload. */

export type Level = "debug" | "info" | "warning" | "error";
export type Log = (level: Level, text: string) => void;

/** Warnings and errors to the console; the rest is for those who ask with `log`. */
export const toConsole: Log = (level, text) => {
  if (level === "warning") console.warn(`observatory: ${text}`);
  else if (level === "error") console.error(`observatory: ${text}`);
};
