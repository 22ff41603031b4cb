// The evidence of one session as a zip: its events, thoughts, seal and every proof, verifiable without a
// gateway.
import { Autocomplete } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { useUrl } from "~/useUrl";
import { Ago } from "~/widgets/Figures";
import { Empty, Loaded, Panel } from "~/widgets/Panel";
import { STATUSES } from "~/widgets/status";
import { useSearchText } from "~/widgets/useSearchText";
import { Download } from "./Download";
import classes from "./Exports.module.css";

export function Bundle({ denied }: { denied: string | undefined }) {
  const [url, setUrl] = useUrl();
  const session_id = url.session ?? "";
  const search = useSearchText(session_id, (text) => setUrl({ session: text }, true));
  const newest = useApi("/v1/sessions", { limit: 20 }, { every: 15_000, keep: true });
  const query = useApi(
    "/v1/sessions/{session_id}",
    {},
    { params: { session_id }, enabled: session_id !== "" },
  );
  return (
    <Panel title="Session evidence">
      <div className={classes.form}>
        <Autocomplete
          size="xs"
          label="Session"
          placeholder="session id; the newest are suggested"
          data={newest.data?.items.map((one) => one.session_id) ?? []}
          renderOption={({ option }) => {
            const one = newest.data?.items.find((item) => item.session_id === option.value);
            return (
              <span className={classes.option}>
                <span className="mono">{option.value}</span>
                <span>{one?.goal ?? ""}</span>
              </span>
            );
          }}
          value={search.text}
          onChange={search.type}
        />
        {session_id === "" ? (
          <p className={classes.note}>
            One zip with the session's events, its thought records and seal, and the proof of each event in
            the signed log.
          </p>
        ) : query.error?.code === 404 ? (
          <Empty command="observatory sessions">No session has that id. List sessions with:</Empty>
        ) : (
          <Loaded query={query} rows={2}>
            {(one) => (
              <>
                <dl className={classes.facts}>
                  <div>
                    <dt>goal</dt>
                    <dd>
                      <Link to="/sessions/$sessionId" params={{ sessionId: one.session_id }}>
                        {one.goal ?? one.session_id}
                      </Link>
                    </dd>
                  </div>
                  <div>
                    <dt>contains</dt>
                    <dd>
                      {one.messages.toLocaleString("en")} messages of {plural(one.agents_count, "agent")}, and
                      every event about them
                    </dd>
                  </div>
                  <div>
                    <dt>state</dt>
                    <dd>
                      {STATUSES[one.status].mark} {STATUSES[one.status].word}
                      {one.sealed ? ", sealed" : ", not sealed"}, last <Ago at={one.last_at} />
                    </dd>
                  </div>
                </dl>
                <Download
                  key={one.session_id}
                  label="Download evidence"
                  denied={denied}
                  wanted={{
                    path: "/v1/sessions/{session_id}/evidence",
                    params: { session_id: one.session_id },
                    file: `evidence-${one.session_id}.zip`,
                    hasManifest: false,
                  }}
                />
              </>
            )}
          </Loaded>
        )}
      </div>
    </Panel>
  );
}
