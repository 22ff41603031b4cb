// The page's one socket and how the browser opens it. The only place that names WebSocket.
import { LiveSocket, type Wire } from "./socket";

function open(): Wire {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}/v1/live`) as unknown as Wire;
}

export const live = new LiveSocket({
  open,
  later: (run, ms) => setTimeout(run, ms),
  forget: (handle) => clearTimeout(handle as number | undefined),
  nowMs: () => Date.now(),
});

if (typeof window !== "undefined") {
  window.addEventListener("online", () => live.retry());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) live.retry();
  });
}
