// The bench page of the map: ?agents=1000&edges=3000&rate=500&light&calm&still. `window.bench` is what the driver
// (bench/topology.py) holds on to.
import "../src/app.css";
import { readTheme, Topology } from "../src/graph";
import { Frames } from "../src/live/frames";
import { Mesh } from "./mesh";

const asked = new URLSearchParams(location.search);
const number = (name: string, otherwise: number) => Number(asked.get(name) ?? otherwise);
document.documentElement.dataset.mantineColorScheme = asked.has("light") ? "light" : "dark";

// Every painter of a frame is timed together: what the page's scripts cost, not only the map's own drawing.
const took: number[] = [];
const frames = new Frames({
  request: (run) =>
    requestAnimationFrame((now) => {
      const began = performance.now();
      run(now);
      took.push(performance.now() - began);
    }),
  cancel: (handle) => cancelAnimationFrame(handle),
});
const canvas = document.querySelector("canvas") as HTMLCanvasElement;
const map = new Topology(canvas, { frames, reducedMotion: asked.has("calm"), theme: readTheme(canvas) });
const mesh = new Mesh(number("agents", 60), number("edges", 160), !asked.has("well"));
const told: [string, unknown][] = [];
for (const name of ["click", "open", "focus", "select", "layer", "hover"] as const) map.on(name, (what) => told.push([name, what]));
map.put(mesh.whole());

const rate = number("rate", 40);
const feed = { putMs: [] as number[], timer: 0, ticks: 0 };
function tick(): void {
  const began = performance.now();
  map.put(mesh.delta(rate / 10));
  feed.ticks += 1;
  if (feed.ticks % 50 === 0) map.put(mesh.rates());
  if (feed.ticks % 30 === 0) map.put(mesh.fork());
  feed.putMs.push(performance.now() - began);
}
if (!asked.has("still")) feed.timer = window.setInterval(tick, 100);
Object.assign(window, { bench: { map, mesh, took, feed, told, tick } });
