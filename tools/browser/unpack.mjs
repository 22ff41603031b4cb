// Unpacks the brotli files of the folder named first into the one named second; Python's own library has no brotli.
import { createReadStream, createWriteStream, readdirSync } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const [from, to] = process.argv.slice(2);
for (const name of readdirSync(from).filter((name) => name.endsWith(".br"))) {
  const target = createWriteStream(join(to, name.slice(0, -3)), { mode: 0o755 });
  await pipeline(createReadStream(join(from, name)), createBrotliDecompress(), target);
}
