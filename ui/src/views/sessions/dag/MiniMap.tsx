// The minimap: all cards as dots on one canvas with the visible part framed; a press or drag moves the view.
// A canvas, because thousands of elements that listen to every pan would make the pan stutter.
import { type Node, useReactFlow, useStore } from "@xyflow/react";
import { useEffect, useMemo, useRef } from "react";
import classes from "./Dag.module.css";
import { HIGH, WIDE } from "./layout";
import { ACROSS, DOWN, fitOf } from "./miniMapFit";
import type { StepData } from "./StepNode";

const TONES: Record<string, string> = {
  alert: "--alert",
  violation: "--violation",
  blocked: "--blocked",
  active: "--active",
};

export function MiniMap({ nodes }: { nodes: Node[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const flow = useReactFlow();
  const x = useStore((store) => store.transform[0]);
  const y = useStore((store) => store.transform[1]);
  const zoom = useStore((store) => store.transform[2]);
  const width = useStore((store) => store.width);
  const height = useStore((store) => store.height);
  const fit = useMemo(() => fitOf(nodes), [nodes]);

  useEffect(() => {
    const pen = canvas.current?.getContext("2d");
    if (!pen || !canvas.current) return;
    const ratio = devicePixelRatio;
    const style = getComputedStyle(canvas.current);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, ACROSS, DOWN);
    for (const node of nodes) {
      if (node.type === "diamond") continue;
      pen.fillStyle = style.getPropertyValue(shade(node));
      pen.fillRect(
        fit.x + node.position.x * fit.scale,
        fit.y + node.position.y * fit.scale,
        Math.max(1.5, WIDE * fit.scale),
        Math.max(1.5, HIGH * fit.scale),
      );
    }
    pen.strokeStyle = style.getPropertyValue("--accent");
    pen.lineWidth = 1.5;
    pen.strokeRect(
      fit.x + (-x / zoom) * fit.scale,
      fit.y + (-y / zoom) * fit.scale,
      (width / zoom) * fit.scale,
      (height / zoom) * fit.scale,
    );
  }, [nodes, fit, x, y, zoom, width, height]);

  const go = (event: React.PointerEvent<HTMLCanvasElement>) => {
    if (event.buttons === 0) return;
    const box = event.currentTarget.getBoundingClientRect();
    void flow.setCenter(
      (event.clientX - box.left - fit.x) / fit.scale,
      (event.clientY - box.top - fit.y) / fit.scale,
      { zoom },
    );
  };
  return (
    <canvas
      ref={canvas}
      className={classes.map}
      width={ACROSS * devicePixelRatio}
      height={DOWN * devicePixelRatio}
      style={{ width: ACROSS, height: DOWN }}
      aria-hidden
      onPointerDown={go}
      onPointerMove={go}
    />
  );
}

function shade(node: Node): string {
  if (node.selected) return "--accent";
  const data = node.data as Partial<StepData>;
  if (data.later) return "--surface-3";
  return TONES[data.paint?.tone ?? ""] ?? "--idle";
}
