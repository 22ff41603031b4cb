// Preloaded into a Node process (`--import`): notes every change of the folder RECORDED_HOME in RECORDED_JOURNAL, in the
// words of tests/flows/power_cut.py. Every call is made: what the process sees is real.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname } from "node:path";

const { RECORDED_HOME: home, RECORDED_JOURNAL: path } = process.env;
const real = { ...fs };
const journal = real.openSync(path, "a", 0o600);
const files = new Map(); // descriptor -> number of the file, or the path of a folder
const known = new Map(); // inode -> number of the file
let numbers = 0;
const note = (op, more) => real.writeSync(journal, `${JSON.stringify({ op, ...more })}\n`);
const isOurs = (path) => String(path).startsWith(home);
const latin = (data, n) => Buffer.from(data).subarray(0, n).toString("latin1");

function create(path, fd) {
  const { ino } = real.fstatSync(fd);
  known.set(ino, numbers++);
  note("create", { path, id: known.get(ino) });
}

function synced(fd, size) {
  const what = files.get(fd);
  if (typeof what === "number") note("fsync", { id: what, size });
  else if (what !== undefined) note("syncdir", { path: what });
}

Object.assign(fs, {
  openSync(path, flags, mode) {
    const existed = real.existsSync(path);
    const fd = real.openSync(path, flags, mode);
    const stat = real.fstatSync(fd);
    if (stat.isDirectory() && (isOurs(path) || path === dirname(home))) files.set(fd, path);
    else if (isOurs(path)) {
      if (!existed) create(path, fd);
      files.set(fd, known.get(stat.ino));
    }
    return fd;
  },
  closeSync(fd) {
    files.delete(fd);
    real.closeSync(fd);
  },
  writeSync(fd, data, ...more) {
    const n = real.writeSync(fd, data, ...more);
    if (files.has(fd)) note("write", { id: files.get(fd), data: latin(data.slice(more[0] ?? 0), n) });
    return n;
  },
  writeFileSync(path, data, options) {
    if (!isOurs(path)) return real.writeFileSync(path, data, options);
    const fd = fs.openSync(path, "w", options?.mode);
    note("truncate", { id: files.get(fd), size: 0 });
    fs.writeSync(fd, Buffer.from(data));
    fs.closeSync(fd);
  },
  fsyncSync(fd) {
    real.fsyncSync(fd);
    synced(fd, real.fstatSync(fd).size);
  },
  fsync(fd, done) {
    const { size } = real.fstatSync(fd); // what is written meanwhile may not be in it
    real.fsync(fd, (error) => {
      if (!error) synced(fd, size);
      done(error);
    });
  },
  ftruncateSync(fd, size) {
    real.ftruncateSync(fd, size);
    if (files.has(fd)) note("truncate", { id: files.get(fd), size });
  },
  renameSync(path, to) {
    real.renameSync(path, to);
    if (isOurs(path)) note("rename", { path, to });
  },
  rmSync(path, options) {
    real.rmSync(path, options);
    if (isOurs(path)) note("unlink", { path });
  },
  mkdirSync(path, options) {
    const made = real.mkdirSync(path, options);
    for (let at = path; made !== undefined && at.length >= made.length; at = dirname(at))
      if (isOurs(at)) note("mkdir", { path: at });
    return made;
  },
});
syncBuiltinESMExports();
