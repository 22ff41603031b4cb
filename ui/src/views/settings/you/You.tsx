// The one signed in: who that is here, what they may, how the windows look, and what they saved.
import { Button, SegmentedControl, useMantineColorScheme } from "@mantine/core";
import { setMotion, useMotion } from "~/motion";
import { show } from "~/shell/overlays";
import { signOut } from "~/shell/signOut";
import { startTour } from "~/shell/tour";
import { Id } from "~/widgets/Figures";
import { Panel, Shown } from "~/widgets/Panel";
import { useMe } from "~/widgets/people";
import { Danger } from "../parts/Danger";
import classes from "../parts/Parts.module.css";
import { Section } from "../parts/Section";
import { SavedViews } from "./SavedViews";
import { SignIns } from "./SignIns";

const DOES: Record<string, string> = {
  read: "look at everything",
  send: "send messages",
  operate: "pause, edit, inject and route",
  approve: "decide at gates",
  verify: "verify proofs",
  export: "export",
  admin: "set what is on these pages",
};

export function You() {
  return (
    <Section
      title="You and the windows"
      lead="Kept in this browser, but for saved views, which are the gateway's."
    >
      <div className={classes.sides}>
        <Panel title="Appearance">
          <Looks />
        </Panel>
        <Panel title="Signed in as">
          <Who />
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
          { value: "auto", label: "as the system" },
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
          { value: "auto", label: "as the system" },
          { value: "reduce", label: "still" },
        ]}
      />
      <p>Still: nothing flashes, slides or fades. Marks and words say the same.</p>
      <div className={classes.buttons}>
        <Button size="compact-sm" variant="default" onClick={() => show({ kind: "help" })}>
          All keys
        </Button>
        <Button size="compact-sm" variant="default" onClick={startTour}>
          Start the tour
        </Button>
      </div>
    </div>
  );
}

function Who() {
  const me = useMe();
  return (
    <Shown asked={me} rows={3}>
      {(who) => (
        <div className={classes.part}>
          <dl className={classes.facts}>
            <dt>name</dt>
            <dd>{who.display_name || who.user_name || who.agent_id || "a key without a user"}</dd>
            <dt>role</dt>
            <dd>{who.role}</dd>
            <dt>may</dt>
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
          <Danger word="Sign out" does="Sign out now" denied={undefined} danger={false} onYes={signOut}>
            This browser forgets who you are; what you typed and did not save is gone. Come back with{" "}
            <code>observatory login</code> or a key.
          </Danger>
        </div>
      )}
    </Shown>
  );
}
