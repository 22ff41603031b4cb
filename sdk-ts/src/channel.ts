/**
 * One WebSocket of an agent's channel, from its opening to its end.
 *
 * Law: the key goes in the first frame, never in the address. What was taken is acknowledged as soon as it is, the last
 * of it before goodbye. A socket that says nothing to two pings is dead and left behind at once: a peer that is gone
 * does not answer a goodbye either, and a browser would wait for it.
 */

import { type Bell, quietly } from "./waiting.ts";

/** What a platform does so that an open channel does not keep a process alive: begun before it is opened, done when
 * it is open, and again when it has ended. */
export type Loosen = (url: string) => () => void;

export interface Talk {
  url: string;
  key: string;
  opening_s: number;
  ping_s: number;
  /** One frame; true for the gateway's greeting. */
  hear(frame: unknown): boolean;
  /** The next acknowledgements to send, none when there are none. */
  acks(): string[];
  /** Rings when there are some. */
  work: Bell;
  /** Aborted when it is time to say goodbye. */
  stop: AbortSignal;
  loosen: Loosen;
}

/** Resolves when the socket has ended: true if the gateway had greeted us, false where no channel can be had. */
export function converse(talk: Talk): Promise<boolean> {
  if (typeof WebSocket === "undefined" || talk.stop.aborted) return Promise.resolve(false);
  const loosened = talk.loosen(talk.url);
  let socket: WebSocket;
  try {
    socket = new WebSocket(talk.url);
  } catch {
    loosened();
    return Promise.resolve(false); // a page over https may not open a plain one
  }
  return new Promise((resolve) => {
    let [greeted, over, heardAt] = [false, false, performance.now()];
    const isOpen = (): boolean => !over && socket.readyState === WebSocket.OPEN;
    const acknowledge = (): void => {
      while (greeted && isOpen()) {
        const ids = talk.acks();
        if (!ids.length) return;
        socket.send(JSON.stringify({ op: "ack", ids }));
      }
    };
    const end = (): void => {
      if (over) return;
      over = true;
      loosened();
      clearTimeout(opening);
      clearInterval(pinging);
      unwatch();
      talk.stop.removeEventListener("abort", goodbye);
      resolve(greeted);
    };
    const leave = (): void => {
      socket.close();
      end();
    };
    const goodbye = (): void => {
      acknowledge();
      socket.close(1000);
    };
    const opening = quietly(() => greeted || leave(), talk.opening_s * 1000);
    const pinging = setInterval(() => {
      if (performance.now() - heardAt > 2000 * talk.ping_s) leave();
      else if (isOpen()) socket.send('{"op":"ping"}');
    }, talk.ping_s * 1000);
    (pinging as { unref?: () => void }).unref?.();
    const unwatch = talk.work.watch(acknowledge);
    talk.stop.addEventListener("abort", goodbye);
    socket.addEventListener("open", () => {
      loosened();
      if (isOpen()) socket.send(JSON.stringify({ op: "auth", key: talk.key }));
    });
    socket.addEventListener("message", ({ data }) => {
      if (over) return; // of a socket left behind: the next one brings it again
      heardAt = performance.now();
      greeted = talk.hear(data) || greeted;
      acknowledge();
    });
    socket.addEventListener("error", () => socket.readyState === WebSocket.CLOSED && end());
    socket.addEventListener("close", end);
  });
}
