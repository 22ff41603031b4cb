// The download button, its progress, and the result: manifest and the command that verifies it.
import { Button, Progress } from "@mantine/core";
import { address } from "~/api/client";
import { ErrorNotice } from "~/widgets/Panel";
import { hasDisk } from "./disk";
import { type Manifest, sized } from "./download";
import classes from "./Exports.module.css";
import { type DownloadRequest, useDownload } from "./useDownload";

export function Download({
  label,
  wanted,
  denied,
  lines,
  bytes,
}: {
  label: string;
  wanted: DownloadRequest;
  denied: string | undefined;
  /** The number of lines to expect, if known; else progress is by bytes. */
  lines?: number;
  bytes?: number;
}) {
  const { taking, start, cancel } = useDownload();
  if (!hasDisk())
    return (
      <div className={classes.take}>
        <Button
          component="a"
          href={denied ? undefined : address(wanted.path, wanted)}
          download={wanted.file}
          size="compact-sm"
          data-disabled={denied !== undefined || undefined}
          title={denied}
        >
          {label}
        </Button>
        <p className={classes.note}>
          {denied ?? "Your browser shows its progress. "}
          {wanted.hasManifest && "The last line of the file is its manifest. "}
          Check it with: <code>observatory verify {wanted.file}</code>
        </p>
      </div>
    );
  const going = taking.state === "going" ? taking.progress : null;
  const part = going
    ? lines
      ? (going.lines / lines) * 100
      : bytes
        ? (going.bytes / bytes) * 100
        : undefined
    : undefined;
  return (
    <div className={classes.take}>
      {going ? (
        <>
          <Progress
            size="sm"
            value={Math.min(100, part ?? 100)}
            animated={part === undefined}
            aria-label={`${label}: in progress`}
          />
          <span className={classes.row}>
            <span role="status">
              {lines
                ? `${Math.max(0, going.lines).toLocaleString("en")} of ${lines.toLocaleString("en")} lines, `
                : ""}
              {sized(going.bytes)}
            </span>
            <Button size="compact-sm" variant="default" onClick={cancel}>
              Cancel
            </Button>
          </span>
        </>
      ) : (
        <span className={classes.row}>
          <Button
            size="compact-sm"
            disabled={denied !== undefined}
            title={denied}
            onClick={() => void start(wanted)}
          >
            {taking.state === "done" ? `${label} again` : label}
          </Button>
          {denied && <span className={classes.note}>{denied}</span>}
        </span>
      )}
      {taking.state === "failed" && <ErrorNotice problem={taking.problem} again={() => void start(wanted)} />}
      {taking.state === "done" && (
        <section className={classes.done} aria-label="Result">
          <p role="status">
            <b>✓ {taking.file}</b>, {sized(taking.progress.bytes)}, is whole and was handed to your browser.{" "}
            <button type="button" className={classes.link} onClick={() => void taking.save()}>
              {" "}
              save again{" "}
            </button>
          </p>
          {taking.manifest && <ManifestFacts manifest={taking.manifest} />}
          <p className={classes.note}>Verify it anywhere:</p>
          <code className={classes.command}>observatory verify {taking.file}</code>
        </section>
      )}
    </div>
  );
}

function ManifestFacts({ manifest }: { manifest: Manifest }) {
  const facts: [string, string][] = [
    [
      "events",
      `${manifest.events.toLocaleString("en")} (#${manifest.from_sequence} to #${manifest.to_sequence})`,
    ],
    ["messages", `${manifest.messages.toLocaleString("en")}, ${manifest.shredded} shredded`],
    ["data", `${manifest.bytes.toLocaleString("en")} bytes`],
    ["digest", manifest.sha256],
    ["first hash", manifest.first_hash ?? "–"],
    ["last hash", manifest.last_hash ?? "–"],
    [
      "signed",
      manifest.checkpoint ? `checkpoint of size ${manifest.checkpoint.split("\n")[1]}` : "no checkpoint",
    ],
  ];
  return (
    <dl className={classes.facts} aria-label="Manifest">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd className={value.startsWith("sha256:") ? "mono" : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
