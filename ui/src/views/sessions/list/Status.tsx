// A session's status by mark, word and colour.
import marks from "~/widgets/Mark.module.css";
import { type SessionStatus, STATUSES } from "./session";

export function Status({ status }: { status: SessionStatus }) {
  const sign = STATUSES[status];
  return (
    <span className={marks.mark} data-tone={sign.tone} title={sign.means}>
      <span aria-hidden className={marks.glyph}>
        {sign.mark}
      </span>
      {sign.word}
    </span>
  );
}
