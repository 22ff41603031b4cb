// Forensic Inspector (view 5): archived messages, their interpretation and their proof, board by board. The
// archive is the first; the others have addresses of their own.
import { Link, useParams } from "@tanstack/react-router";
import { Suspense } from "react";
import { Boards } from "~/widgets/Boards";
import { Empty, Loading } from "~/widgets/Panel";
import { BOARDS } from "./boards";

const addressOf = (id: string) => (id === "archive" ? "/forensics" : `/forensics/${id}`);

export function Forensics() {
  const { board = "archive" } = useParams({ strict: false }) as { board?: string };
  const chosen = BOARDS.find((one) => one.id === board);
  return (
    <Boards
      label="Boards of the Forensic Inspector"
      boards={BOARDS.map(({ id, name, group }) => ({ name, group, to: addressOf(id) }))}
      current={addressOf(board)}
    >
      {chosen ? (
        <Suspense fallback={<Loading rows={8} />}>
          <chosen.page />
        </Suspense>
      ) : (
        <Empty>
          There is no board “{board}”. <Link to="/forensics">Open the archive</Link>
        </Empty>
      )}
    </Boards>
  );
}
