// The settings: notifications, inbound connections, data, detectors, and appearance.
import { Link, useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { Boards } from "~/widgets/Boards";
import { Empty, Loading } from "~/widgets/Panel";
import { FIRST, SECTIONS } from "./sections";

const addressOf = (id: string) => (id === FIRST ? "/settings" : `/settings/${id}`);

export function Settings() {
  const { section = FIRST } = useParams({ strict: false }) as { section?: string };
  const chosen = SECTIONS.find((one) => one.id === section);
  return (
    <Boards
      label="Sections of the settings"
      boards={SECTIONS.map(({ id, name, group }) => ({ name, group, to: addressOf(id) }))}
      current={addressOf(section)}
    >
      {chosen ? (
        <Suspense fallback={<Loading rows={8} />}>
          <chosen.page />
        </Suspense>
      ) : (
        <Empty>
          There is no settings section “{section}”. <Link to="/settings">Open alerts</Link>
        </Empty>
      )}
    </Boards>
  );
}
