/// <reference types="vitest/config" />
// Builds into the Python package, so that a wheel holds the windows and users need no Node. Every asset is also
// written packed (brotli, gzip): the gateway sends the form a browser takes and never packs while it serves.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const gateway = process.env.OBSERVATORY_URL ?? "http://127.0.0.1:4800";

/** Below this a packet carries it either way. */
const WORTH_PACKING = 1024;

function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle({ dir }) {
      const folder = join(dir ?? "", "assets");
      for (const name of readdirSync(folder)) {
        const path = join(folder, name);
        if (!/\.(js|css|svg|json|wasm)$/.test(name) || statSync(path).size < WORTH_PACKING) continue;
        const plain = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length };
        writeFileSync(`${path}.br`, brotliCompressSync(plain, { params }));
      }
    },
  };
}

/** Every text passes src/jsx/shown.ts, that of libraries too: theirs is ours by the time it is seen. */
function shown(): Plugin {
  const own = fileURLToPath(new URL("./src/jsx/", import.meta.url));
  const places: Record<string, string> = {
    "react/jsx-runtime": join(own, "runtime.ts"),
    "react/jsx-dev-runtime": join(own, "devRuntime.ts"),
  };
  return {
    name: "shown",
    enforce: "pre",
    resolveId: (source, importer) => (importer?.startsWith(own) ? null : (places[source] ?? null)),
  };
}

export default defineConfig({
  plugins: [shown(), react(), packed()],
  resolve: { alias: { "~": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: process.env.WINDOWS_OUT ?? "../src/observatory/http/windows",
    emptyOutDir: true,
    target: "es2023",
    // A file inlined as a data: address would need a wider policy than the gateway gives.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1600,
    manifest: "manifest.json",
  },
  server: { proxy: { "/v1": { target: gateway, ws: true }, "/login": gateway, "/logout": gateway, "/schemas": gateway, "/docs": gateway, "/licenses": gateway } },
  // One load of the modules for all files of a worker: three quarters of the time went into loading them for each. A
  // test that changes what is global puts it back itself.
  test: { environment: "node", include: ["src/**/*.test.ts"], pool: "threads", isolate: false },
});
