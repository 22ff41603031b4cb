/** The SDK's log output. Never contains a key or a payload. */

export type Level = "debug" | "info" | "warning" | "error";
export type Log = (level: Level, text: string) => void;

/** Warnings and errors to the console; other levels need the option `log`. */
export const toConsole: Log = (level, text) => {
  if (level === "warning") console.warn(`observatory: ${text}`);
  else if (level === "error") console.error(`observatory: ${text}`);
};
