// Global instructions: the words every agent of a class works by. Choose a class, read what is in force and who has
// taken it, write anew with the difference beside it, push it by typing the class's name, roll back.
import { useAnswer } from "~/api/questions";
import { useUrl } from "~/useUrl";
import { Empty, Shown } from "~/widgets/Panel";
import classes from "../God.module.css";
import { Chosen } from "./Chosen";
import { kindsOf } from "./classes";

export function Instructions() {
  const [url, setUrl] = useUrl();
  const asked = useAnswer("/v1/instructions", undefined, { every: 4_000, keep: true });
  const agents = useAnswer("/v1/agents", undefined, { every: 10_000, keep: true });
  const kinds = asked.data && agents.data ? kindsOf(asked.data.items, agents.data.items) : undefined;
  const both = {
    data: kinds,
    error: asked.error ?? agents.error,
    isPending: asked.isPending || agents.isPending,
    refetch: () => void asked.refetch(),
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
        <p className={classes.faint}>The words every agent of a class works by, in every cluster.</p>
      </header>
      <Shown asked={both} rows={8}>
        {(known) =>
          known.length === 0 && !url.class ? (
            <Empty command="observatory instructions set writer --file writer.md">
              No class of agents is known yet: one comes with the first message that names its type.
              Instructions can be given before:
            </Empty>
          ) : (
            <div className={classes.classes}>
              <ul className={classes.kinds} aria-label="Classes of agents">
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
                          ? `none yet · ${all} ${all === 1 ? "agent" : "agents"}`
                          : `v${version} · ${taken === all ? "✓" : "…"} ${taken} of ${all}`}
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
              {url.class ? (
                <Chosen key={url.class} kind={url.class} />
              ) : (
                <p className={classes.faint}>Choose a class to read, change or roll back its instructions.</p>
              )}
            </div>
          )
        }
      </Shown>
    </section>
  );
}
