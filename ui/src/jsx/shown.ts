// Sanitises every text that reaches the page (S1110): the JSX runtime of all our components and of the
// libraries they use (vite.config.ts puts it in place of React's), so no view can forget it. What a person
// types (`value`) is left as it is. ASCII-only text costs one test.
import { createElement, type ReactNode } from "react";
import { inert, turns } from "~/widgets/inert";

const WORDED = ["title", "alt", "placeholder", "aria-label", "aria-description", "aria-valuetext", "label"];
/** They hold text alone, so nothing in them can be isolated by an element. */
const TEXT_ONLY = new Set(["option", "title", "textarea", "text", "tspan"]);

type Props = Record<string, unknown> & { children?: ReactNode };

function textOf(text: string, isolate: boolean, key?: number): ReactNode {
  const visible = inert(text);
  return isolate && turns(visible) ? createElement("bdi", { key }, visible) : visible;
}

function childOf(child: ReactNode, isolate: boolean, key?: number): ReactNode {
  if (typeof child === "string") return textOf(child, isolate, key);
  if (!Array.isArray(child)) return child;
  // Returns the same array if nothing changed: React compares.
  let made: ReactNode[] | null = null;
  for (const [n, one] of child.entries()) {
    const now = childOf(one as ReactNode, isolate, n);
    if (now === one) continue;
    made ??= [...child];
    made[n] = now;
  }
  return made ?? child;
}

/** The props of a DOM element; props of a component are left alone. */
export function shown(type: unknown, props: Props): Props {
  if (typeof type === "function" || (typeof type === "object" && type !== null)) return props;
  if (type === "style" || type === "script") return props;
  let made: Props | null = null;
  const host = typeof type === "string";
  const children = childOf(props.children, !(host && TEXT_ONLY.has(type)));
  if (children !== props.children) made = { ...props, children };
  if (!host) return made ?? props;
  for (const name of WORDED) {
    const text = props[name];
    if (typeof text !== "string") continue;
    const visible = inert(text);
    if (visible !== text) made = { ...(made ?? props), [name]: visible };
  }
  return made ?? props;
}
