// Agents for React: the list, the legend's counts, whether there are any. At most twice a second however fast
// records arrive; the map is fed by its own effect, record by record, without React.
import { useEffect, useState } from "react";
import type { NodeRecord } from "~/graph";
import { live } from "~/live/connection";
import type { Change } from "~/live/records";

export interface Nodes {
  nodes: NodeRecord[];
  ready: boolean;
}

const NO_NODES: Nodes = { nodes: [], ready: false };

function touches(change: Change, kind: string): boolean {
  return (
    change.whole ||
    change.put.some((record) => record.kind === kind) ||
    change.dropped.some((record) => record.kind === kind)
  );
}

export function useNodes(everyMs = 500): Nodes {
  const [nodes, setNodes] = useState<Nodes>(NO_NODES);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    let last = 0;
    const read = () => {
      timer = null;
      last = performance.now();
      const picture = live.picture("fleet");
      if (picture?.ready)
        setNodes({ nodes: [...picture.of("node").values()] as unknown as NodeRecord[], ready: true });
    };
    const soon = () => {
      timer ??= setTimeout(read, Math.max(0, everyMs - (performance.now() - last)));
    };
    const leave = live.follow("fleet", (change) => touches(change, "node") && soon());
    if (live.picture("fleet")?.ready) soon();
    return () => {
      leave();
      if (timer !== null) clearTimeout(timer);
    };
  }, [everyMs]);
  return nodes;
}
