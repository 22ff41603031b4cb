// A message told as a story: blocks in the order one asks them, for the DecisionLog and the eight message types.
// What is of none of them, or has not the shape it should, is told as it is. Pure.
import { exact } from "~/widgets/clock";
import { money, ms } from "~/widgets/words";

export type Block =
  | { kind: "lead"; text: string }
  | { kind: "text"; title: string; text: string }
  | { kind: "lines"; title: string; lines: readonly string[]; isOrdered?: boolean }
  | { kind: "facts"; title: string; facts: readonly [string, string][] }
  | { kind: "links"; title: string; links: readonly { uri: string; label: string; type: string }[] }
  | { kind: "json"; title: string; value: unknown };

export interface Story {
  /** What sort of message it is, as a verb: "asks for a decision". */
  does: string;
  blocks: Block[];
}

type Free = Record<string, unknown>;
const isFree = (value: unknown): value is Free =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const free = (value: unknown): Free => (isFree(value) ? value : {});
const many = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function word(value: unknown): string {
  if (value === null || value === undefined || value === "") return "";
  return typeof value === "string"
    ? value
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);
}

function facts(title: string, told: readonly [string, unknown][]): Block[] {
  const known = told
    .map(([name, value]): [string, string] => [name, word(value)])
    .filter(([, value]) => value);
  return known.length > 0 ? [{ kind: "facts", title, facts: known }] : [];
}
const text = (title: string, value: unknown): Block[] =>
  word(value) ? [{ kind: "text", title, text: word(value) }] : [];
const lines = (title: string, value: unknown, isOrdered = false): Block[] => {
  const told = many(value).map(word).filter(Boolean);
  return told.length > 0 ? [{ kind: "lines", title, lines: told, isOrdered }] : [];
};
const lead = (value: unknown): Block[] => (word(value) ? [{ kind: "lead", text: word(value) }] : []);
const json = (title: string, value: unknown): Block[] =>
  value === null || value === undefined ? [] : [{ kind: "json", title, value }];

/** JSON in a string is opened; other text stays text. */
function opened(title: string, value: unknown): Block[] {
  const said = word(value).trim();
  if (said.startsWith("{") || said.startsWith("[")) {
    try {
      return json(title, JSON.parse(said));
    } catch {
      // not JSON: the text itself
    }
  }
  return text(title, value);
}

function links(title: string, value: unknown): Block[] {
  const told = many(value).map((one) =>
    typeof one === "string"
      ? { uri: one, label: one, type: "" }
      : {
          uri: word(free(one).uri),
          label: word(free(one).label) || word(free(one).uri),
          type: word(free(one).ref_type),
        },
  );
  const known = told.filter((one) => one.uri || one.label);
  return known.length > 0 ? [{ kind: "links", title, links: known }] : [];
}

const percent = (value: unknown) =>
  typeof value === "number" ? `${Math.round(value * 100)} %` : word(value);
const dollars = (value: unknown) => (typeof value === "number" ? money(value) : word(value));
const took = (value: unknown) => (typeof value === "number" ? ms(value) : word(value));
/** A time as one reads it; what is none stays as it is. */
const when = (value: unknown) => (word(value) ? exact(word(value)) : "");
const yes = (value: unknown, said: string) => (value === true ? said : "");

function decisionLog(log: Free): Story {
  const thought = free(log.cognition);
  const action = free(log.action);
  const delta = free(log.state_delta);
  const who = free(log.identity);
  const meta = free(log.meta);
  const control = free(log.control);
  const weighed = many(thought.alternatives).map((one) => {
    const { option, why_not } = free(one);
    return word(why_not) ? `${word(option)}: ${word(why_not)}` : word(option);
  });
  return {
    does: "tells a step",
    blocks: [
      ...lead(thought.intent ?? action.tool_call ?? "It told no intent."),
      ...lines("What it did not choose, and why", weighed),
      ...lines("How it reasoned", thought.reasoning_chain, true),
      ...facts("What it did", [
        ["tool", action.tool_call ?? "none"],
        ["came to", action.status],
        ["took", took(action.duration_ms)],
        ["for", who.recipient],
        ["asks", yes(control.hitl_required, "a person to look before it goes on")],
        ["signal", control.interrupt_signal],
        ["ends", yes(control.is_terminal, "its last word in this session")],
      ]),
      ...opened("What went in", action.tool_input),
      ...opened("What came out", action.tool_output_summary),
      ...lines("What it put into memory", delta.added_to_memory),
      ...lines("What it read from memory", delta.read_from_memory),
      ...links("What it leans on", thought.citations),
      ...facts("What it cost", [
        ["this step", dollars(delta.cost)],
        ["session so far", dollars(delta.cumulative_session_cost)],
        [
          "tokens",
          typeof delta.tokens_consumed === "number" ? delta.tokens_consumed.toLocaleString("en") : "",
        ],
      ]),
      ...facts("How sure it was", [
        ["confidence", percent(thought.confidence_score)],
        ["entropy", thought.entropy_score],
        ["strategy", thought.strategy_used],
      ]),
      ...facts("Who it was", [
        ["agent", who.agent_id],
        ["type", who.agent_type],
        ["version", who.capability_version],
        ["model", [word(who.model), word(who.provider)].filter(Boolean).join(" by ")],
        ["cluster", meta.cluster_id],
      ]),
    ],
  };
}

type Tell = (payload: Free) => Story;

const TELLS: Record<string, Tell> = {
  decision_request: (payload) => ({
    does: "asks for a decision",
    blocks: [
      ...lead(payload.title),
      ...text("What is at stake", payload.description),
      ...lines(
        "What can be chosen",
        many(payload.options).map((one) => {
          const { option_id, label, risk_level, is_default } = free(one);
          const more = [word(risk_level) && `${word(risk_level)} risk`, is_default === true && "the default"];
          return `${word(label) || word(option_id)}${more.some(Boolean) ? ` (${more.filter(Boolean).join(", ")})` : ""}`;
        }),
      ),
      ...facts("Until when", [
        ["deadline", when(payload.deadline)],
        [
          "then",
          word(free(payload.auto_action).option_id) &&
            `${word(free(payload.auto_action).option_id)} by itself`,
        ],
      ]),
      ...links("What to look at", payload.context_refs),
      ...facts("Which decision", [["decision", payload.decision_id]]),
    ],
  }),
  decision_response: (payload) => ({
    does: "decides",
    blocks: [
      ...lead(payload.selected_option_id),
      ...text("In the words of who decided", payload.respondent_note),
      ...facts("How", [
        ["decided", when(payload.responded_at)],
        ["by way of", payload.response_method],
        ["decision", payload.decision_id],
      ]),
    ],
  }),
  status_alert: (payload) => ({
    does: "raises an alert",
    blocks: [
      ...lead(payload.title),
      ...facts("How bad", [
        ["severity", payload.severity],
        ["category", payload.category],
        ["asks for action", yes(payload.actionable, "yes")],
        ["alert", payload.alert_id],
      ]),
      ...text("In short", payload.summary),
      ...text("In full", free(payload.detail).content),
    ],
  }),
  artifact_share: (payload) => ({
    does: "shares an artifact",
    blocks: [
      ...lead(payload.title),
      ...facts("What it is", [
        ["kind", payload.artifact_type],
        ["media type", payload.media_type],
        ["language", payload.language],
        [
          "size",
          typeof payload.size_bytes === "number" ? `${payload.size_bytes.toLocaleString("en")} bytes` : "",
        ],
        ["sha256", payload.sha256],
        ["artifact", payload.artifact_id],
      ]),
      ...links("Where it lies", payload.uri ? [word(payload.uri)] : []),
      ...text("Its content", payload.content),
      ...links("What it belongs to", payload.related_refs),
    ],
  }),
  action_confirmation: (payload) => ({
    does: "confirms an action",
    blocks: [
      ...lead(payload.title ?? payload.action_type),
      ...facts("What came of it", [
        ["came to", payload.status],
        ["action", payload.action_type],
        ["began", when(free(payload.detail).started_at)],
        ["ended", when(free(payload.detail).completed_at)],
        ["took", took(free(payload.detail).duration_ms)],
        ["decided by", free(payload.triggered_by).decision_id],
        ["can be rolled back", yes(payload.rollback_available, "yes")],
      ]),
      ...text("In short", payload.summary),
      ...json("Before", payload.before_state),
      ...json("After", payload.after_state),
    ],
  }),
  heartbeat: (payload) => {
    const task = free(payload.current_task);
    const used = free(payload.resource_usage);
    return {
      does: "gives a sign of life",
      blocks: [
        ...lead(payload.agent_status),
        ...text("What it works on", task.description),
        ...facts("How far", [
          ["done", typeof task.progress_pct === "number" ? `${task.progress_pct} %` : ""],
          ["ready", when(task.estimated_completion)],
          ["task", task.task_id],
        ]),
        ...facts("In the last 24 hours", [
          ["tokens", used.tokens_consumed_24h],
          ["calls", used.api_calls_24h],
        ]),
      ],
    };
  },
  text: (payload) => ({
    does: "writes",
    blocks: [
      ...text("", payload.content),
      ...facts("How", [
        ["format", payload.format],
        ["answers", payload.reply_to],
      ]),
    ],
  }),
  system_event: (payload) => ({
    does: "tells of the platform",
    blocks: [
      ...lead(payload.event_type),
      ...text("Why", payload.reason),
      ...facts("Whom it concerns", [
        ["entity", payload.entity_id],
        ["event", payload.event_id],
      ]),
      ...json("In full", payload.detail),
    ],
  }),
};

/** Null when it is of a type this page does not know: then it is shown as the JSON it is. */
export function storyOf(type: string, message: unknown): Story | null {
  if (!isFree(message)) return null;
  if (type === "decision_log") return decisionLog(message);
  const tell = Object.hasOwn(TELLS, type) ? TELLS[type] : undefined;
  return tell && isFree(message.payload) ? tell(message.payload) : null;
}

/** A link only where a browser may go; other schemes stay text. */
export function hrefOf(uri: string): string | null {
  return /^https?:\/\//i.test(uri) ? uri : null;
}
