// Form fields: label, description, and the fault below. They know their form and their name.
import {
  Checkbox,
  MultiSelect,
  NativeSelect,
  Switch,
  TagsInput,
  Textarea,
  TextInput,
  type TextInputProps,
} from "@mantine/core";
import type { ReactNode } from "react";
import type { Form } from "./useForm";

interface Of {
  form: Form;
  name: string;
  label: string;
  means?: ReactNode;
}

export function TextField({ form, name, label, means, ...more }: Of & Omit<TextInputProps, "form" | "name">) {
  return (
    <TextInput
      size="xs"
      label={label}
      description={means}
      value={form.text(name)}
      error={form.faults[name]}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => form.set({ [name]: event.currentTarget.value })}
      {...more}
    />
  );
}

export function TextAreaField({
  form,
  name,
  label,
  means,
  rows = 4,
  mono = false,
}: Of & { rows?: number; mono?: boolean }) {
  return (
    <Textarea
      size="xs"
      label={label}
      description={means}
      value={form.text(name)}
      error={form.faults[name]}
      rows={rows}
      resize="vertical"
      spellCheck={false}
      styles={mono ? { input: { fontFamily: "var(--mantine-font-family-monospace)" } } : undefined}
      onChange={(event) => form.set({ [name]: event.currentTarget.value })}
    />
  );
}

export interface Option {
  value: string;
  label: string;
}

export function SelectField({ form, name, label, means, options }: Of & { options: readonly Option[] }) {
  return (
    <NativeSelect
      size="xs"
      label={label}
      description={means}
      value={form.text(name)}
      error={form.faults[name]}
      data={[...options]}
      onChange={(event) => form.set({ [name]: event.currentTarget.value })}
    />
  );
}

/** Several of a list, filtered by typing. */
export function MultiSelectField({
  form,
  name,
  label,
  means,
  of,
  hint,
}: Of & { of: readonly string[]; hint?: string }) {
  return (
    <MultiSelect
      size="xs"
      label={label}
      description={means}
      placeholder={form.list(name).length === 0 ? hint : undefined}
      value={form.list(name)}
      error={form.faults[name]}
      data={[...of]}
      searchable
      clearable
      clearButtonProps={{ "aria-label": `Clear ${label.toLowerCase()}` }}
      hidePickedOptions
      limit={100}
      nothingFoundMessage="No matches"
      onChange={(chosen) => form.set({ [name]: chosen })}
    />
  );
}

/** Free words, each entered with Enter or a comma. */
export function TagsField({ form, name, label, means, hint }: Of & { hint?: string }) {
  return (
    <TagsInput
      size="xs"
      label={label}
      description={means}
      placeholder={form.list(name).length === 0 ? hint : undefined}
      value={form.list(name)}
      error={form.faults[name]}
      splitChars={[","]}
      clearable
      clearButtonProps={{ "aria-label": `Clear ${label.toLowerCase()}` }}
      onChange={(words) => form.set({ [name]: words })}
    />
  );
}

export function CheckboxField({ form, name, label, means }: Of) {
  return (
    <Switch
      size="xs"
      label={label}
      description={means}
      checked={form.flag(name)}
      error={form.faults[name]}
      onChange={(event) => form.set({ [name]: event.currentTarget.checked })}
    />
  );
}

/** A few named checkboxes. */
export function CheckboxGroupField({
  form,
  name,
  label,
  means,
  options,
}: Of & { options: readonly Option[] }) {
  return (
    <Checkbox.Group
      size="xs"
      label={label}
      description={means}
      value={form.list(name)}
      error={form.faults[name]}
      onChange={(chosen) => form.set({ [name]: chosen })}
    >
      {options.map(({ value, label: word }) => (
        <Checkbox key={value} size="xs" mt={6} value={value} label={word} />
      ))}
    </Checkbox.Group>
  );
}
