// Times of day, always in 24 hours: a list that mixes "2:05 PM" with "14:05" is misread under stress. Days
// and months use the viewer's language. Formatters are created once: one costs more than a thousand uses of
// it.
import { LOCALE, ZONE } from "~/locale";

type At = string | number | Date;
const by = (parts: Intl.DateTimeFormatOptions) => {
  const format = new Intl.DateTimeFormat(LOCALE, { ...parts, hourCycle: "h23", timeZone: ZONE });
  return (at: At): string => {
    const when = new Date(at);
    return Number.isNaN(when.getTime()) ? String(at) : format.format(when);
  };
};
const MINUTE = { hour: "2-digit", minute: "2-digit" } as const;
const DAY = { day: "numeric", month: "short" } as const;

/** `14:05` */
export const clock = by(MINUTE);
/** `14:05:09` */
export const clockToSecond = by({ ...MINUTE, second: "2-digit" });
/** `Mon 14:05` */
export const weekdayClock = by({ weekday: "short", ...MINUTE });
/** `16 Nov` */
export const day = by(DAY);
/** `16 Nov 2026` */
export const date = by({ ...DAY, year: "numeric" });
/** `16 Nov 2026, 14:05` */
export const dateClock = by({ ...DAY, year: "numeric", ...MINUTE });
/** `16 Nov 2026, 14:05:09 GMT+1`: for the exact time */
export const exact = by({
  ...DAY,
  year: "numeric",
  ...MINUTE,
  second: "2-digit",
  timeZoneName: "short",
});
