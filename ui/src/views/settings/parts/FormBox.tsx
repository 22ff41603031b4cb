// Around the fields of a form: why one may not change it, who changed it meanwhile, what belongs to no field,
// and the button that says what it does.
import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import classes from "./Parts.module.css";
import type { Form } from "./useForm";

interface Props {
  form: Form;
  label: string;
  /** What the button does, in words. */
  does: string;
  /** Why the one signed in may not. */
  denied: string | undefined;
  /** Resolves to whether it was done. */
  onSave: () => Promise<unknown>;
  /** Saved without a change too: what is made anew. */
  isNew?: boolean;
  children: ReactNode;
  /** Beside the buttons. */
  more?: ReactNode;
}

export function FormBox({ form, label, does, denied, onSave, isNew = false, children, more }: Props) {
  const [busy, setBusy] = useState(false);
  const idle = !isNew && !form.isDirty;
  const save = async () => {
    if (denied !== undefined || form.isTheirs || idle) return;
    setBusy(true);
    try {
      await onSave();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className={classes.form}
      aria-label={label}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {denied && <p className={classes.denied}>{denied}</p>}
      {form.isTheirs && <Theirs form={form} />}
      <fieldset className={classes.fields} disabled={denied !== undefined}>
        {children}
      </fieldset>
      {form.trouble && (
        <p className={classes.trouble} role="alert">
          ! {form.trouble}
        </p>
      )}
      <div className={classes.buttons}>
        <Button
          type="submit"
          size="compact-sm"
          loading={busy}
          disabled={denied !== undefined || idle || form.isTheirs}
          title={
            denied ?? (idle ? "Nothing was changed" : form.isTheirs ? "Decide about theirs first" : undefined)
          }
        >
          {does}
        </Button>
        {form.isDirty && (
          <Button size="compact-sm" variant="default" onClick={form.forget}>
            Throw the changes away
          </Button>
        )}
        {more}
      </div>
    </form>
  );
}

function Theirs({ form }: { form: Form }) {
  return (
    <div className={classes.trouble} role="alert">
      <p>! Somebody changed this while you did. Yours is kept here and not saved.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={form.goOn}>
          Go on with mine, over theirs
        </Button>
        <Button size="compact-sm" variant="default" onClick={form.forget}>
          Take theirs
        </Button>
      </div>
    </div>
  );
}
