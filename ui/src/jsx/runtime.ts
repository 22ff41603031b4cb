// Replaces `react/jsx-runtime`: see shown.ts.
import * as react from "react/jsx-runtime";
import { shown } from "./shown";

export const Fragment = react.Fragment;
export const jsx: typeof react.jsx = (type, props, key) => react.jsx(type, shown(type, props as never), key);
export const jsxs: typeof react.jsxs = (type, props, key) =>
  react.jsxs(type, shown(type, props as never), key);
