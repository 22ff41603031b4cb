// One inbox item with its full context and its possible answers.
import { Link } from "@tanstack/react-router";
import type { WaitingItem } from "~/protocol/openapi";
import { usePeek } from "~/shell/peek";
import { GateCard } from "~/widgets/GateCard";
import { Tag } from "~/widgets/Mark";
import { Decision } from "./Decision";
import classes from "./Inbox.module.css";
import { KINDS } from "./ItemList";
import { ReviewStep } from "./ReviewStep";

export function Detail({ item, done }: { item: WaitingItem; done: () => void }) {
  const { open } = usePeek();
  const { agent_id } = item;
  const step = item.message_id ? { step: item.message_id } : {};
  return (
    <>
      <header className={classes.head}>
        <Tag tone={KINDS[item.kind].tone}>{KINDS[item.kind].word}</Tag>
        <h2>{item.title ?? item.why}</h2>
        <p className={classes.links}>
          {agent_id && (
            <button type="button" className={classes.link} onClick={() => open(`agent:${agent_id}`)}>
              {agent_id}
            </button>
          )}
          <Link to="/sessions/$sessionId" params={{ sessionId: item.session_id }} search={step as never}>
            Open session
          </Link>
        </p>
      </header>
      {item.kind === "gate" && <GateCard gate={item} done={done} keyed />}
      {item.kind === "decision" && <Decision item={item} done={done} />}
      {item.kind === "review" && <ReviewStep item={item} done={done} />}
    </>
  );
}
