// What the loop detectors go by: a scale from loop to normal that moves with the figures, and what each means.
import { setDetectors } from "~/acts/settings";
import { useAnswer } from "~/api/questions";
import type { DetectorAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Shown } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/people";
import { Text, Tick, Words } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { type Form, useForm } from "../parts/useForm";
import own from "./Detectors.module.css";
import { FIGURES, readDetectors, valuesOf } from "./detectors";

export function Detectors() {
  const asked = useAnswer("/v1/settings/detectors", undefined, { every: 5_000, keep: true });
  return (
    <Section
      title="Detectors"
      lead="Three detectors look at every step: the score of repeated steps in a session, the pattern of calls of one agent, and known prompt injections. What is saved counts for the next message."
    >
      <Shown asked={asked} rows={8}>
        {(answer) => <Knobs answer={answer} />}
      </Shown>
    </Section>
  );
}

function Knobs({ answer }: { answer: DetectorAnswer }) {
  const denied = useWhyNot("operate");
  const names = useNames();
  const form = useForm("detectors", valuesOf(answer), answer.updated_at ?? null);
  const save = async () => {
    const read = readDetectors(form.values, answer);
    if (read.faults) return form.setFaults(read.faults);
    if (await setDetectors(read.changes, read.before, form.refused)) form.forget();
  };
  const others = Object.keys(answer.loops?.agents ?? {});
  return (
    <div className={classes.card}>
      <FormBox form={form} label="Detectors" does="Save" denied={denied} onSave={save}>
        <h2 className={own.title}>The score</h2>
        <p className={classes.says}>
          Distinct steps by all steps in the window: five alike score 0.2, five different ones 1.
        </p>
        <Scale form={form} />
        <div className={classes.two}>
          {["loop_below", "warning_up_to", "window", "n_min", "discrepancy_gap"].map((name) => (
            <Figure key={name} form={form} name={name} />
          ))}
          <Text
            form={form}
            name="stuck_s"
            label="Stuck after"
            means="A session silent or pending for longer is listed as stuck."
          />
        </div>
        <h2 className={own.title}>The pattern</h2>
        <Tick form={form} name="loops.on" label="Look for patterns of calls" />
        <div className={classes.two}>
          {Object.keys(FIGURES)
            .filter((name) => name.startsWith("loops."))
            .map((name) => (
              <Figure key={name} form={form} name={name} />
            ))}
        </div>
        <Words
          form={form}
          name="loops.polling_tools"
          label="Tools that may repeat"
          means="Called again and again without being a loop; * at the end of a word matches any rest."
        />
        <h2 className={own.title}>Prompt injections</h2>
        <Tick
          form={form}
          name="injections.on"
          label="Look for known prompt injections in what agents are given"
        />
        {others.length > 0 && (
          <p className={classes.says}>
            Otherwise for {others.join(", ")}: set by <code>observatory detectors</code>.
          </p>
        )}
      </FormBox>
      <div className={classes.part}>
        <p className={classes.faint}>
          {answer.updated_at ? (
            <>
              Changed <Ago at={answer.updated_at} /> by {names(answer.updated_by)}.
            </>
          ) : (
            "These are the defaults; nobody changed them."
          )}
        </p>
      </div>
    </div>
  );
}

function Figure({ form, name }: { form: Form; name: string }) {
  const figure = FIGURES[name];
  if (!figure) return null;
  return <Text form={form} name={name} label={figure.label} means={figure.means} inputMode="decimal" />;
}

const share = (text: string) => Math.min(1, Math.max(0, Number(text) || 0));

/** Loop, warning and normal from 0 to 1, as the figures in the form have it. */
function Scale({ form }: { form: Form }) {
  const loop = share(form.text("loop_below"));
  const warning = Math.max(loop, share(form.text("warning_up_to")));
  const parts = [
    { tone: "alert", word: "⟲ loop", from: 0, to: loop },
    { tone: "blocked", word: "! warning", from: loop, to: warning },
    { tone: "good", word: "✓ normal", from: warning, to: 1 },
  ];
  const told = `Below ${loop} loop, up to ${warning} warning, above normal`;
  return (
    <div className={own.scale} role="img" aria-label={told}>
      {parts.map(
        ({ tone, word, from, to }) =>
          to > from && (
            <span key={tone} data-tone={tone} style={{ width: `${(to - from) * 100}%` }}>
              <b>{word}</b>
              <i>{to}</i>
            </span>
          ),
      )}
    </div>
  );
}
