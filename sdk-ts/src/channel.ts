/**
 * Runs one WebSocket of an agent's channel, from opening to end.
 *
 * Rule: the key is sent in the first frame, never in the URL. Accepted items are acknowledged at once, the last ones
 * before closing. A socket that does not answer two pings is dead and abandoned at once: a dead peer does not answer a
 * close frame either, and a browser would wait for it.
 */

import { type ChangeNotifier, quietly } from "./waiting.ts";

/** The platform's way to keep an open channel from keeping a process alive: called before it is opened; the returned
 * function is called when it is open and again when it has ended. */
export type Loosen = (url: string) => () => void;

export interface SocketOptions {
  url: string;
  key: string;
  opening_s: number;
  ping_s: number;
  /** Handles one frame; true for the gateway's `hello`. */
  onFrame(frame: unknown): boolean;
  /** The next acknowledgements to send, none when there are none. */
  acks(): string[];
  /** Notifies when there are some. */
  work: ChangeNotifier;
  /** Aborted when it is time to close. */
  stop: AbortSignal;
  loosen: Loosen;
}

/** Resolves when the socket has ended: true if the gateway had sent `hello`, false if no channel was possible. */
export function runSocket(options: SocketOptions): Promise<boolean> {
  if (typeof WebSocket === "undefined" || options.stop.aborted) return Promise.resolve(false);
  const unrefSockets = options.loosen(options.url);
  let socket: WebSocket;
  try {
    socket = new WebSocket(options.url);
  } catch {
    unrefSockets();
    return Promise.resolve(false); // a page over https may not open an unencrypted socket
  }
  return new Promise((resolve) => {
    let [hasHello, over, heardAt] = [false, false, performance.now()];
    const isOpen = (): boolean => !over && socket.readyState === WebSocket.OPEN;
    const acknowledge = (): void => {
      while (hasHello && isOpen()) {
        const ids = options.acks();
        if (!ids.length) return;
        socket.send(JSON.stringify({ op: "ack", ids }));
      }
    };
    const end = (): void => {
      if (over) return;
      over = true;
      unrefSockets();
      clearTimeout(opening);
      clearInterval(pinging);
      unwatch();
      options.stop.removeEventListener("abort", closeNormally);
      resolve(hasHello);
    };
    const leave = (): void => {
      socket.close();
      end();
    };
    const closeNormally = (): void => {
      acknowledge();
      socket.close(1000);
    };
    const opening = quietly(() => hasHello || leave(), options.opening_s * 1000);
    const pinging = setInterval(() => {
      if (performance.now() - heardAt > 2000 * options.ping_s) leave();
      else if (isOpen()) socket.send('{"op":"ping"}');
    }, options.ping_s * 1000);
    (pinging as { unref?: () => void }).unref?.();
    const unwatch = options.work.watch(acknowledge);
    options.stop.addEventListener("abort", closeNormally);
    socket.addEventListener("open", () => {
      unrefSockets();
      if (isOpen()) socket.send(JSON.stringify({ op: "auth", key: options.key }));
    });
    socket.addEventListener("message", ({ data }) => {
      if (over) return; // from an abandoned socket: the next one delivers it again
      heardAt = performance.now();
      hasHello = options.onFrame(data) || hasHello;
      acknowledge();
    });
    socket.addEventListener("error", () => socket.readyState === WebSocket.CLOSED && end());
    socket.addEventListener("close", end);
  });
}
