import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { LOCALE, localeOf, ZONE, zoneOf, zones } from "./locale";

const SOURCES = fileURLToPath(new URL(".", import.meta.url));

describe("language and time zone (S1113)", () => {
  it("are the first usable ones the browser reports, else English and UTC", () => {
    expect(localeOf(["en-US@posix"])).toBe("en-US");
    expect(localeOf(["C", "POSIX", undefined, "de_CH.UTF-8"])).toBe("de-CH");
    expect(localeOf(["", "x", "C.UTF-8", "@", "en-US-u-va-posix-"])).toBe("en");
    expect([zoneOf("Europe/Zurich"), zoneOf("Etc/Unknown"), zoneOf("Mars/Olympus")]).toEqual([
      "Europe/Zurich",
      "UTC",
      "UTC",
    ]);
    expect(zones()[0]).toBe("UTC");
    expect(() => new Intl.DateTimeFormat(LOCALE, { timeZone: ZONE })).not.toThrow();
  });
  it("are decided in one place: nothing else reads them from the browser", () => {
    const asking = readdirSync(SOURCES, { recursive: true, encoding: "utf-8" })
      .filter((name) => /\.tsx?$/.test(name) && !/(\.test\.ts|^locale\.ts|clock\.ts)$/.test(name))
      .filter((name) =>
        /\bIntl\.|navigator\.languages?\b|\.toLocale\w*\((?!"en)/.test(
          readFileSync(join(SOURCES, name), "utf-8"),
        ),
      );
    expect(asking).toEqual([]);
  });
});
