// The signed-in user: identity, permissions, appearance, and saved views.
import { Button, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { setMotion, useMotion } from "~/motion";
import { show } from "~/shell/overlays";
import { signOut } from "~/shell/signOut";
import { startTour } from "~/shell/tour";
import { Id } from "~/widgets/Figures";
import { Loaded, Panel } from "~/widgets/Panel";
import { useMe } from "~/widgets/users";
import { DangerButton } from "../parts/DangerButton";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { SavedViews } from "./SavedViews";
import { SignIns } from "./SignIns";

const DOES: Record<string, string> = {
  read: "read everything",
  send: "send messages",
  operate: "pause, edit, inject and route",
  approve: "decide at gates",
  verify: "verify proofs",
  export: "export",
  admin: "change settings",
};

export function Account() {
  return (
    <Section
      title="Appearance and account"
      lead="Stored in this browser, except for saved views, which are stored on the gateway."
    >
      <div className={classes.sides}>
        <Panel title="Appearance">
          <Looks />
        </Panel>
        <Panel title="Signed in as">
          <AccountFacts />
        </Panel>
      </div>
      <SignIns />
      <SavedViews />
    </Section>
  );
}

function Looks() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const motion = useMotion();
  return (
    <div className={classes.part}>
      <h3 id="theme">Theme</h3>
      <SegmentedControl
        size="xs"
        aria-labelledby="theme"
        value={colorScheme}
        onChange={(scheme) => setColorScheme(scheme as "auto" | "dark" | "light")}
        data={[
          { value: "auto", label: "system" },
          { value: "dark", label: "dark" },
          { value: "light", label: "light" },
        ]}
      />
      <h3 id="motion">Motion</h3>
      <SegmentedControl
        size="xs"
        aria-labelledby="motion"
        value={motion}
        onChange={(next) => setMotion(next as "auto" | "reduce")}
        data={[
          { value: "auto", label: "system" },
          { value: "reduce", label: "still" },
        ]}
      />
      <p>Still: nothing flashes, slides or fades. Marks and text carry the same information.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={() => show({ kind: "help" })}>
          {" "}
          Keyboard shortcuts{" "}
        </Button>
        <Button size="compact-sm" variant="default" onClick={startTour}>
          Start the tour
        </Button>
      </div>
    </div>
  );
}

function AccountFacts() {
  const me = useMe();
  return (
    <Loaded query={me} rows={3}>
      {(who) => (
        <div className={classes.part}>
          <dl className={classes.facts}>
            <dt>name</dt>
            <dd>{who.display_name || who.user_name || who.agent_id || "key without a user"}</dd>
            <dt>role</dt>
            <dd>{who.role}</dd>
            <dt>permissions</dt>
            <dd>{who.permissions.map((one) => DOES[one] ?? one).join("; ")}</dd>
            <dt>tenant</dt>
            <dd>{who.tenant_name || who.tenant_id}</dd>
            {who.user_id && (
              <>
                <dt>id</dt>
                <dd>
                  <Id id={who.user_id} />
                </dd>
              </>
            )}
          </dl>
          <DangerButton word="Sign out" does="Sign out now" denied={undefined} danger={false} onYes={signOut}>
            Ends this browser's session; unsaved input is lost. Sign in again with{" "}
            <code>observatory login</code> or a key.
          </DangerButton>
        </div>
      )}
    </Loaded>
  );
}
