// Thresholds of the loop and injection detectors: a scale from loop to normal that follows the values, and
// the meaning of each.

import { useApi } from "~/api/queries";
import { setDetectors } from "~/commands/settings";
import type { DetectorAnswer } from "~/protocol/openapi";
import { Ago } from "~/widgets/Figures";
import { Loaded } from "~/widgets/Panel";
import { useNames, useWhyNot } from "~/widgets/users";
import { CheckboxField, TagsField, TextField } from "../parts/Fields";
import { FormBox } from "../parts/FormBox";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { type Form, useForm } from "../parts/useForm";
import own from "./Detectors.module.css";
import { FIGURES, readDetectors, valuesOf } from "./detectors";

export function Detectors() {
  const query = useApi("/v1/settings/detectors", undefined, { every: 5_000, keep: true });
  return (
    <Section
      title="Detectors"
      lead="Three detectors check every step: the repetition score of a session, call patterns of one agent, and known prompt injections. Changes apply from the next message."
    >
      <Loaded query={query} rows={8}>
        {(answer) => <Knobs answer={answer} />}
      </Loaded>
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
        <h2 className={own.title}>Repetition score</h2>
        <p className={classes.says}>
          Distinct steps divided by all steps in the window: five equal ones score 0.2, five different ones 1.
        </p>
        <Scale form={form} />
        <div className={classes.two}>
          {["loop_below", "warning_up_to", "window", "n_min", "discrepancy_gap"].map((name) => (
            <Figure key={name} form={form} name={name} />
          ))}
          <TextField
            form={form}
            name="stuck_s"
            label="Stuck after"
            means="A session silent or pending for longer is listed as stuck."
          />
        </div>
        <h2 className={own.title}>Call patterns</h2>
        <CheckboxField form={form} name="loops.on" label="Detect call patterns" />
        <div className={classes.two}>
          {Object.keys(FIGURES)
            .filter((name) => name.startsWith("loops."))
            .map((name) => (
              <Figure key={name} form={form} name={name} />
            ))}
        </div>
        <TagsField
          form={form}
          name="loops.polling_tools"
          label="Tools that may repeat"
          means="Repeated calls of these are not a loop; a trailing * matches any rest."
        />
        <h2 className={own.title}>Prompt injections</h2>
        <CheckboxField
          form={form}
          name="injections.on"
          label="Detect known prompt injections in agents' inputs"
        />
        {others.length > 0 && (
          <p className={classes.says}>
            Overridden for {others.join(", ")}: set with <code>observatory detectors</code>.
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
            "Default settings."
          )}
        </p>
      </div>
    </div>
  );
}

function Figure({ form, name }: { form: Form; name: string }) {
  const figure = FIGURES[name];
  if (!figure) return null;
  return <TextField form={form} name={name} label={figure.label} means={figure.means} inputMode="decimal" />;
}

const share = (text: string) => Math.min(1, Math.max(0, Number(text) || 0));

/** Loop, warning and normal from 0 to 1, with the form's values. */
function Scale({ form }: { form: Form }) {
  const loop = share(form.text("loop_below"));
  const warning = Math.max(loop, share(form.text("warning_up_to")));
  const parts = [
    { tone: "alert", word: "⟲ loop", from: 0, to: loop },
    { tone: "blocked", word: "! warning", from: loop, to: warning },
    { tone: "good", word: "✓ normal", from: warning, to: 1 },
  ];
  const summary = `Below ${loop} loop, up to ${warning} warning, above normal`;
  return (
    <div className={own.scale} role="img" aria-label={summary}>
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
