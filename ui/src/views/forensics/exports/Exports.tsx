// The trail as a file: what it will hold and how large, its way here, its manifest, and how to check it. Or
// the evidence of one session. Nothing of it is held in memory: it goes to disk as it comes.
import { Checkbox, SegmentedControl, TextInput } from "@mantine/core";
import { useAnswer } from "~/api/questions";
import { useUrl } from "~/useUrl";
import { exact } from "~/widgets/clock";
import { useNow } from "~/widgets/now";
import { Empty, Panel, Shown } from "~/widgets/Panel";
import { useWhyNot } from "~/widgets/people";
import { Deck } from "../Deck";
import deck from "../Deck.module.css";
import { Bundle } from "./Bundle";
import { choiceOf, queryOf, WHATS, type What } from "./choice";
import classes from "./Exports.module.css";
import { Take } from "./Take";
import { sized } from "./taking";

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
  const plan = useAnswer("/v1/audit/export/plan", bad ? {} : (query as never), { enabled: !bad, keep: true });
  const { data } = plan;
  return (
    <Deck
      label="Export"
      lead={
        data && !bad && !plan.error
          ? `${data.events.toLocaleString("en")} events, ${data.exact ? "" : "about "}${sized(data.bytes_about)}`
          : "Take the trail with you"
      }
      beside="A file that anybody can check without this gateway. Who takes one is in the record."
    >
      <div className={classes.columns}>
        <Panel title="The audit trail">
          <div className={classes.form}>
            <SegmentedControl
              size="xs"
              aria-label="Which part of the trail"
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
              label="with the messages' bytes and the words of thoughts"
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
              <Shown asked={plan} rows={3}>
                {(told) => (
                  <>
                    <dl className={classes.facts}>
                      <div>
                        <dt>events</dt>
                        <dd>
                          {told.events.toLocaleString("en")} (#{told.from_sequence} to #{told.to_sequence})
                        </dd>
                      </div>
                      <div>
                        <dt>from, to</dt>
                        <dd>
                          {exact(told.first_at)} – {exact(told.last_at)}
                        </dd>
                      </div>
                      <div>
                        <dt>messages</dt>
                        <dd>
                          {told.exact ? "" : "about "}
                          {told.messages_about.toLocaleString("en")}
                          {told.payloads ? ", with their bytes" : ", without their bytes"}
                        </dd>
                      </div>
                      <div>
                        <dt>size</dt>
                        <dd>
                          {told.exact ? "" : "about "}
                          {sized(told.bytes_about)}
                        </dd>
                      </div>
                      <div>
                        <dt>proof</dt>
                        <dd>
                          {told.signed
                            ? "chain, payload hashes and a signed checkpoint of the log"
                            : "chain and payload hashes; a signed checkpoint comes with what begins at #1"}
                        </dd>
                      </div>
                    </dl>
                    <Take
                      label="Export"
                      denied={denied}
                      lines={told.events + 1}
                      bytes={told.bytes_about}
                      wanted={{
                        path: "/v1/audit/export",
                        // The very range that was told, though the trail goes on meanwhile.
                        query: { from: told.from_sequence, to: told.to_sequence, payloads: told.payloads },
                        file: told.file,
                        hasManifest: true,
                      }}
                    />
                  </>
                )}
              </Shown>
            )}
          </div>
        </Panel>
        <Bundle denied={denied} />
      </div>
      <p className={deck.foot}>
        The same on the terminal: <code>observatory export --out trail.jsonl.gz</code>
      </p>
    </Deck>
  );
}
