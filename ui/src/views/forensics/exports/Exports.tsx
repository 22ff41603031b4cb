// Export of the audit trail: size estimate, download with progress, manifest, and how to verify it. Or the
// evidence of one session. Nothing is held in memory: it is written to disk as it arrives.
import { Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { useApi } from "~/api/queries";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { useNow } from "~/widgets/now";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/users";
import { BoardLayout } from "../BoardLayout";
import deck from "../BoardLayout.module.css";
import { Bundle } from "./Bundle";
import { choiceOf, queryOf, WHATS, type What } from "./choice";
import { Download } from "./Download";
import { sized } from "./download";
import classes from "./Exports.module.css";

const NAMES: Record<What, string> = {
  all: "Everything",
  "1h": "Last hour",
  "24h": "Last day",
  "7d": "7 days",
  numbers: "Numbers",
};

export function Exports() {
  const [url, setUrl] = useUrl();
  const denied = useWhyNot("export");
  const choice = choiceOf(url);
  const query = queryOf(choice, useNow());
  const bad = typeof query === "string" ? query : null;
  const plan = useApi("/v1/audit/export/plan", bad ? {} : (query as never), { enabled: !bad, keep: true });
  const { data } = plan;
  return (
    <BoardLayout
      label="Export"
      lead={
        data && !bad && !plan.error
          ? `${data.events.toLocaleString("en")} events, ${data.exact ? "" : "about "}${sized(data.bytes_about)}`
          : "Export the audit trail"
      }
      hint="A file that can be verified without this gateway. Every export is recorded in the audit trail."
    >
      <div className={classes.columns}>
        <Panel title="The audit trail">
          <div className={classes.form}>
            <SegmentedControl
              size="xs"
              aria-label="Range"
              className={classes.which}
              data={WHATS.map((value) => ({ value, label: NAMES[value] }))}
              value={choice.what}
              onChange={(what) => setUrl({ what: what === "all" ? null : what, from: null, to: null })}
            />
            {choice.what === "numbers" && (
              <div className={classes.numbers}>
                <TextInput
                  size="xs"
                  label="First event"
                  inputMode="numeric"
                  placeholder="1"
                  value={choice.from}
                  error={bad !== null}
                  onChange={(event) => setUrl({ from: event.currentTarget.value }, true)}
                />
                <TextInput
                  size="xs"
                  label="Last event"
                  inputMode="numeric"
                  placeholder="the newest"
                  value={choice.to}
                  error={bad !== null}
                  onChange={(event) => setUrl({ to: event.currentTarget.value }, true)}
                />
              </div>
            )}
            <Checkbox
              size="xs"
              label="Include message payloads and thoughts"
              checked={choice.payloads}
              onChange={(event) => setUrl({ payloads: event.currentTarget.checked ? null : "0" }, true)}
            />
            {bad ? (
              <p className={classes.bad} role="alert">
                {bad}
              </p>
            ) : plan.error?.code === 409 || plan.error?.code === 400 ? (
              <Empty>{plan.error.message}</Empty>
            ) : (
              <Loaded query={plan} rows={3}>
                {(estimate) => (
                  <>
                    <dl className={classes.facts}>
                      <div>
                        <dt>events</dt>
                        <dd>
                          {estimate.events.toLocaleString("en")} (#{estimate.from_sequence} to #
                          {estimate.to_sequence})
                        </dd>
                      </div>
                      <div>
                        <dt>from, to</dt>
                        <dd>
                          {exact(estimate.first_at)} – {exact(estimate.last_at)}
                        </dd>
                      </div>
                      <div>
                        <dt>messages</dt>
                        <dd>
                          {estimate.exact ? "" : "about "}
                          {estimate.messages_about.toLocaleString("en")}
                          {estimate.payloads ? ", with payloads" : ", without payloads"}
                        </dd>
                      </div>
                      <div>
                        <dt>size</dt>
                        <dd>
                          {estimate.exact ? "" : "about "}
                          {sized(estimate.bytes_about)}
                        </dd>
                      </div>
                      <div>
                        <dt>proof</dt>
                        <dd>
                          {estimate.signed
                            ? "chain, payload hashes and a signed checkpoint of the log"
                            : "chain and payload hashes; a signed checkpoint is included if the range starts at #1"}
                        </dd>
                      </div>
                    </dl>
                    <Download
                      label="Export"
                      denied={denied}
                      lines={estimate.events + 1}
                      bytes={estimate.bytes_about}
                      wanted={{
                        path: "/v1/audit/export",
                        // The very range that was estimated, though the trail grows meanwhile.
                        query: {
                          from: estimate.from_sequence,
                          to: estimate.to_sequence,
                          payloads: estimate.payloads,
                        },
                        file: estimate.file,
                        hasManifest: true,
                      }}
                    />
                  </>
                )}
              </Loaded>
            )}
          </div>
        </Panel>
        <Bundle denied={denied} />
      </div>
      <p className={deck.foot}>
        The same on the terminal: <code>observatory export --out trail.jsonl.gz</code>
      </p>
    </BoardLayout>
  );
}
