// The one place that decides language and time zone. What a browser reports may be no language tag at all
// (`en-US@posix`, `C`: Chromium under LANG=C), and Intl throws at it, also in libraries that read `navigator`
// when they are loaded (uPlot): so this is loaded first, and sets `navigator.language` to the tag chosen
// here.

/** The first of these that Intl knows, without system suffixes (`.UTF-8`, `@posix`); else English. */
export function localeOf(said: readonly (string | undefined)[]): string {
  for (const one of said) {
    const tag = (one ?? "").replace(/[.@].*$/, "").replaceAll("_", "-");
    try {
      const [known] = Intl.DateTimeFormat.supportedLocalesOf(tag);
      if (known) return known;
    } catch {
      // no language tag: the next one
    }
  }
  return "en";
}

/** Undefined is the browser's own; where that one cannot be used, UTC. */
export function zoneOf(zone: string | undefined): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone || "UTC";
  } catch {
    return "UTC";
  }
}

export function zones(): string[] {
  const known = Intl.supportedValuesOf?.("timeZone") ?? [];
  return ["UTC", ...known.filter((zone) => zone !== "UTC")];
}

const own: Partial<Navigator> = globalThis.navigator ?? {};
export const LOCALE = localeOf([own.language, ...(own.languages ?? [])]);
export const ZONE = zoneOf(undefined);

/** Whole numbers, everywhere the same. */
export const WHOLE = new Intl.NumberFormat("en");

if (own.language !== undefined && own.language !== LOCALE)
  Object.defineProperty(own, "language", { value: LOCALE, configurable: true });
