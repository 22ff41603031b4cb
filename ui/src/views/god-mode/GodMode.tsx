// God Mode (view 6): kill switch and global instructions, users and keys, budgets; next to them the audit
// trail of these actions. Nothing saves automatically; far-reaching actions require a typed confirmation.
import { useKeys } from "~/shell/keys";
import { useUrl } from "~/useUrl";
import { Boards } from "~/widgets/Boards";
import { AuditTrail } from "./AuditTrail";
import { Access } from "./access/Access";
import { Budgets } from "./budgets/Budgets";
import classes from "./God.module.css";
import { Instructions } from "./instructions/Instructions";
import { KillSwitch } from "./kill/KillSwitch";

const TO = "/god-mode";
const BOARDS = [
  { name: "Stop and instruct", to: TO, id: "" },
  { name: "Users and keys", to: TO, id: "access", search: { board: "access" } },
  { name: "Budgets", to: TO, id: "budgets", search: { board: "budgets" } },
];

export function GodMode() {
  const [{ board }] = useUrl();
  const current = BOARDS.find(({ id }) => id === board)?.id ?? "";
  useKeys(
    current === ""
      ? {
          k: { says: "Focus the kill switch", run: () => document.getElementById("kill")?.focus() },
          i: { says: "Focus the instructions", run: () => document.getElementById("instructions")?.focus() },
        }
      : {},
    "God Mode",
  );
  return (
    <section className={classes.view} aria-label="God Mode">
      <h1 className="unseen">God Mode</h1>
      <Boards label="Boards of God Mode" boards={BOARDS} current={current}>
        {current === "access" ? (
          <Access />
        ) : current === "budgets" ? (
          <Budgets />
        ) : (
          <div className={classes.inside}>
            <KillSwitch />
            <Instructions />
            <div className={classes.below}>
              <AuditTrail />
            </div>
          </div>
        )}
      </Boards>
    </section>
  );
}
