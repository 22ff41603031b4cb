// The frame of a form: permission notice, edit conflict, faults without a field, and the save button.
import { Button } from "@mantine/core";
import { type ReactNode, useState } from "react";
import classes from "./Parts.module.css";
import type { Form } from "./useForm";

interface Props {
  form: Form;
  label: string;
  /** The save button's label. */
  does: string;
  /** Why the user may not change it. */
  denied: string | undefined;
  /** Resolves to whether it was saved. */
  onSave: () => Promise<unknown>;
  /** A new item can be saved without a change. */
  isNew?: boolean;
  children: ReactNode;
  /** Next to the buttons. */
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
          title={denied ?? (idle ? "No changes" : form.isTheirs ? "Resolve the conflict first" : undefined)}
        >
          {does}
        </Button>
        {form.isDirty && (
          <Button size="compact-sm" variant="default" onClick={form.forget}>
            Discard changes
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
      <p>! Someone else changed this. Yours is kept here, not saved.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={form.goOn}>
          Overwrite with mine
        </Button>
        <Button size="compact-sm" variant="default" onClick={form.forget}>
          Use theirs
        </Button>
      </div>
    </div>
  );
}
