// Replaces `react/jsx-dev-runtime` in development: see shown.ts.
import * as react from "react/jsx-dev-runtime";
import { shown } from "./shown";

type Make = (type: unknown, props: never, ...rest: unknown[]) => unknown;
const make = (react as unknown as { jsxDEV: Make }).jsxDEV;

export const Fragment = react.Fragment;
export const jsxDEV: Make = (type, props, ...rest) => make(type, shown(type, props) as never, ...rest);
