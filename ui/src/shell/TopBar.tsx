// The bar above every view: tenant, search, throughput, inbox, alerts, connection, theme, user.
import { ActionIcon, Kbd, Menu, Tooltip, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useApi } from "~/api/queries";
import { useRecords } from "~/live/useLive";
import type { ViewItem, WaitingCounts, Whoami } from "~/protocol/openapi";
import { rate } from "~/widgets/format";
import { useMe } from "~/widgets/users";
import { Alerts } from "./Alerts";
import { ConnectionStatus } from "./ConnectionStatus";
import { keyName } from "./Help";
import { Icon } from "./Icon";
import { show } from "./overlays";
import { Sparkline } from "./Sparkline";
import { removeView, useOpenView, useViewList } from "./saved";
import { signOut } from "./signOut";
import classes from "./TopBar.module.css";
import { startTour } from "./tour";

export function TopBar() {
  const me = useMe().data;
  return (
    <header className={classes.bar}>
      {me && <Tenant me={me} />}
      <button
        type="button"
        className={classes.search}
        onClick={() => show({ kind: "palette", mode: "all" })}
        aria-keyshortcuts="Control+K Meta+K"
      >
        <Icon name="search" size={15} />
        <span className={classes.ask}>Search or run a command…</span>
        <Kbd size="xs" aria-hidden>
          {keyName("mod+k")}
        </Kbd>
      </button>
      <span className={classes.rest} />
      <Ticker />
      <NeedYou />
      <Alerts />
      <ConnectionStatus />
      <span className={classes.tools}>
        <Saved />
        <Theme />
        {me && <Person me={me} />}
      </span>
    </header>
  );
}

function Tenant({ me }: { me: Whoami }) {
  const name = me.tenant_name || me.tenant_id;
  const tenants = useApi("/v1/tenants");
  const others = (tenants.data?.items ?? []).filter((one) => !one.current && one.disabled_at === null);
  if (others.length === 0)
    return (
      <span className={classes.tenant} title={me.tenant_id}>
        {name}
      </span>
    );
  return (
    <Menu position="bottom-start" width={260}>
      <Menu.Target>
        <button type="button" className={classes.tenant} aria-label={`Tenant ${name}, switch`}>
          {name} <span aria-hidden>▾</span>
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>You are in {name}. Others you know of:</Menu.Label>
        {others.map((one) => (
          <Menu.Item
            key={one.tenant_id}
            onClick={() => show({ kind: "enter", tenant: one.display_name || one.tenant_id })}
          >
            {one.display_name || one.tenant_id}
            {!one.may_enter && <span className={classes.faint}> · requires its own key</span>}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface ThroughputNow {
  rate_per_s: number;
}

function Ticker() {
  const query = useApi("/v1/fleet/throughput", { window: "60s" }, { every: 5_000 });
  const [now] = useRecords<ThroughputNow>("fleet", "throughput").items;
  const perSecond = now?.rate_per_s ?? query.data?.rate_per_s;
  if (perSecond === undefined) return null;
  // The running second is incomplete: it would always look like a drop.
  const values = (query.data?.points ?? []).slice(0, -1).map((point) => point.messages);
  return (
    <Link
      to="/fleet"
      className={classes.ticker}
      aria-label={`Throughput ${rate(perSecond)}`}
      title="Last 60 s"
    >
      <Sparkline values={values} />
      <span className={classes.rate}>{rate(perSecond)}</span>
    </Link>
  );
}

/** Counted live; fetched until the topic arrives. Steps to review are past: they are shown quietly. */
function NeedYou() {
  const { items, ready } = useRecords<WaitingCounts>("waiting", "counts");
  const query = useApi("/v1/waiting", { limit: 1 }, { enabled: !ready, every: 5_000 });
  const counts = items[0] ?? query.data?.counts;
  const asking = (counts?.gates ?? 0) + (counts?.decisions ?? 0);
  const looks = `${counts?.reviews ?? 0}${counts?.reviews_more ? "+" : ""} to review`;
  const needs = `${asking || "Nothing"} ${asking > 1 ? "need" : "needs"} you`;
  return (
    <Link
      to="/inbox"
      className={classes.need}
      data-some={asking > 0 || undefined}
      aria-label={`${needs}, ${looks}, open the inbox`}
      title={`${needs}: gates and questions waiting for an answer. ${looks}: steps with low confidence.`}
    >
      <Icon name="inbox" size={16} />
      <span aria-hidden>
        {asking > 0 && <strong>{asking}</strong>}
        <span className={classes.word}>{needs.replace(/^\d+/, "").replace("Nothing", "nothing")}</span>
        {(counts?.reviews ?? 0) > 0 && <span className={classes.looks}> · {looks}</span>}
      </span>
    </Link>
  );
}

function Saved() {
  const list = useViewList();
  const open = useOpenView();
  const views: ViewItem[] = list.data?.items ?? [];
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={28} aria-label="Saved views">
          <Icon name="saved" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => show({ kind: "save" })}>Save this view…</Menu.Item>
        {views.length > 0 && <Menu.Divider />}
        {views.map((view) => (
          <div key={view.view_id} className={classes.saved}>
            <Menu.Item onClick={() => open(view)}>
              {view.name}
              {view.shared && <span className={classes.faint}> · shared</span>}
            </Menu.Item>
            {view.mine && (
              <Menu.Item
                className={classes.remove}
                aria-label={`Remove ${view.name}`}
                onClick={() => void removeView(view)}
              >
                <Icon name="close" size={14} />
              </Menu.Item>
            )}
          </div>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function Theme() {
  const { setColorScheme } = useMantineColorScheme();
  const now = useComputedColorScheme("dark");
  const other = now === "dark" ? "light" : "dark";
  return (
    <Tooltip label={`${other} theme`} openDelay={400}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size={28}
        aria-label={`Switch to the ${other} theme`}
        onClick={() => setColorScheme(other)}
      >
        <Icon name={now === "dark" ? "sun" : "moon"} />
      </ActionIcon>
    </Tooltip>
  );
}

function Person({ me }: { me: Whoami }) {
  const name = me.display_name || me.user_name || me.agent_id || "key without a user";
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={28} aria-label={`You: ${name}, ${me.role}`}>
          <Icon name="person" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {name}, {me.role}
          <div>may {me.permissions.join(", ")}</div>
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item component={Link} to="/settings" rightSection={<Kbd size="xs">,</Kbd>}>
          Settings
        </Menu.Item>
        <Menu.Item onClick={() => show({ kind: "help" })} rightSection={<Kbd size="xs">?</Kbd>}>
          Keys
        </Menu.Item>
        <Menu.Item onClick={startTour}>Tour</Menu.Item>
        <Menu.Item component="a" href="/docs">
          API
        </Menu.Item>
        <Menu.Item component="a" href="/licenses">
          Licenses
        </Menu.Item>
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
