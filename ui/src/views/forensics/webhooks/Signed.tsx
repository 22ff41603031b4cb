// A state or signature by mark, word and tone, with its meaning on hover.
import { Tag } from "~/widgets/Mark";
import type { Sign } from "./log";

export function Signed({ sign }: { sign: Sign }) {
  return (
    <Tag tone={sign.tone}>
      <span title={sign.means}>
        <span aria-hidden>{sign.mark}</span> {sign.word}
      </span>
    </Tag>
  );
}
