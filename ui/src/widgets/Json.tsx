// Formatted JSON, with JSON inside strings parsed (a `tool_input` is JSON in a string); anything else as it
// is.
import { indented } from "./formatJson";
import classes from "./Json.module.css";

export function pretty(value: unknown): string {
  if (typeof value === "string") {
    const text = value.trim();
    return text.startsWith("{") || text.startsWith("[") ? indented(text) : value;
  }
  return JSON.stringify(value, null, 2) ?? "";
}

export function Json({ value, label }: { value: unknown; label?: string }) {
  return (
    // biome-ignore-start lint/a11y/noNoninteractiveTabindex: a long text must be scrollable by keyboard
    // biome-ignore-start lint/a11y/useSemanticElements: a text is a group, not a set of fields
    <pre className={classes.json} tabIndex={0} role="group" aria-label={label ?? "JSON"}>
      {pretty(value)}
    </pre>
    // biome-ignore-end lint/a11y/useSemanticElements: see above
    // biome-ignore-end lint/a11y/noNoninteractiveTabindex: see above
  );
}
