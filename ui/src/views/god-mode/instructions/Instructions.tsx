// Global instructions: the system prompt for each agent type. Select a type, read the current version and its
// acknowledgements, edit with a diff, push by typing the type's name, roll back.
import { useApi } from "~/api/queries";
import { plural } from "~/plural";
import { useUrl } from "~/useUrl";
import { Empty, Loaded } from "~/widgets/Panel";
import classes from "../God.module.css";
import { kindsOf } from "./agentTypes";
import { TypeInstructions } from "./TypeInstructions";

export function Instructions() {
  const [url, setUrl] = useUrl();
  const query = useApi("/v1/instructions", undefined, { every: 4_000, keep: true });
  const agents = useApi("/v1/agents", undefined, { every: 10_000, keep: true });
  const kinds = query.data && agents.data ? kindsOf(query.data.items, agents.data.items) : undefined;
  const both = {
    data: kinds,
    error: query.error ?? agents.error,
    isPending: query.isPending || agents.isPending,
    refetch: () => void query.refetch(),
  };
  return (
    <section
      className={classes.lever}
      data-lever="instructions"
      id="instructions"
      aria-label="Global instructions"
      tabIndex={-1}
    >
      <header className={classes.leverHead}>
        <h2>Global instructions</h2>
        <p className={classes.faint}>System prompt for an agent type, in every cluster.</p>
      </header>
      <Loaded query={both} rows={8}>
        {(known) =>
          known.length === 0 && !url.class ? (
            <Empty command="observatory instructions set writer --file writer.md">
              No agent types yet: a type appears with the first message that names it. Instructions can be set
              before:
            </Empty>
          ) : (
            <div className={classes.classes}>
              <ul className={classes.kinds} aria-label="Agent types">
                {known.map(({ name, version, agents: all, taken }) => (
                  <li key={name}>
                    <button
                      type="button"
                      aria-current={url.class === name || undefined}
                      onClick={() => setUrl({ class: url.class === name ? null : name })}
                    >
                      <b>{name}</b>
                      <span className={classes.standing}>
                        {version === null
                          ? `none yet · ${plural(all, "agent")}`
                          : `v${version} · ${taken === all ? "✓" : "…"} ${taken} of ${all}`}
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
              {url.class ? (
                <TypeInstructions key={url.class} kind={url.class} />
              ) : (
                <p className={classes.faint}>
                  Select an agent type to read, change or roll back its instructions.
                </p>
              )}
            </div>
          )
        }
      </Loaded>
    </section>
  );
}
