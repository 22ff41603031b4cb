// A message rendered as blocks in reading order, for the DecisionLog and the eight message types. Anything
// else, or anything malformed, is shown raw. Pure.
import { exact } from "~/widgets/clock";
import { money, ms } from "~/widgets/format";

export type Block =
  | { kind: "lead"; text: string }
  | { kind: "text"; title: string; text: string }
  | { kind: "lines"; title: string; lines: readonly string[]; isOrdered?: boolean }
  | { kind: "facts"; title: string; facts: readonly [string, string][] }
  | { kind: "links"; title: string; links: readonly { uri: string; label: string; type: string }[] }
  | { kind: "json"; title: string; value: unknown };

export interface Story {
  /** The kind of message, as a verb: "asks for a decision". */
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

function facts(title: string, entries: readonly [string, unknown][]): Block[] {
  const known = entries
    .map(([name, value]): [string, string] => [name, word(value)])
    .filter(([, value]) => value);
  return known.length > 0 ? [{ kind: "facts", title, facts: known }] : [];
}
const text = (title: string, value: unknown): Block[] =>
  word(value) ? [{ kind: "text", title, text: word(value) }] : [];
const lines = (title: string, value: unknown, isOrdered = false): Block[] => {
  const entries = many(value).map(word).filter(Boolean);
  return entries.length > 0 ? [{ kind: "lines", title, lines: entries, isOrdered }] : [];
};
const lead = (value: unknown): Block[] => (word(value) ? [{ kind: "lead", text: word(value) }] : []);
const json = (title: string, value: unknown): Block[] =>
  value === null || value === undefined ? [] : [{ kind: "json", title, value }];

/** JSON in a string is parsed; other text stays text. */
function opened(title: string, value: unknown): Block[] {
  const raw = word(value).trim();
  if (raw.startsWith("{") || raw.startsWith("[")) {
    try {
      return json(title, JSON.parse(raw));
    } catch {
      // not JSON: the text itself
    }
  }
  return text(title, value);
}

function links(title: string, value: unknown): Block[] {
  const entries = many(value).map((one) =>
    typeof one === "string"
      ? { uri: one, label: one, type: "" }
      : {
          uri: word(free(one).uri),
          label: word(free(one).label) || word(free(one).uri),
          type: word(free(one).ref_type),
        },
  );
  const known = entries.filter((one) => one.uri || one.label);
  return known.length > 0 ? [{ kind: "links", title, links: known }] : [];
}

const percent = (value: unknown) =>
  typeof value === "number" ? `${Math.round(value * 100)} %` : word(value);
const dollars = (value: unknown) => (typeof value === "number" ? money(value) : word(value));
const took = (value: unknown) => (typeof value === "number" ? ms(value) : word(value));
/** A formatted time; anything else stays as it is. */
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
    does: "reports a step",
    blocks: [
      ...lead(thought.intent ?? action.tool_call ?? "No intent recorded."),
      ...lines("Rejected alternatives", weighed),
      ...lines("Reasoning", thought.reasoning_chain, true),
      ...facts("Action", [
        ["tool", action.tool_call ?? "none"],
        ["status", action.status],
        ["took", took(action.duration_ms)],
        ["for", who.recipient],
        ["asks", yes(control.hitl_required, "human review before it continues")],
        ["signal", control.interrupt_signal],
        ["terminal", yes(control.is_terminal, "its last step in this session")],
      ]),
      ...opened("Input", action.tool_input),
      ...opened("Output", action.tool_output_summary),
      ...lines("Added to memory", delta.added_to_memory),
      ...lines("Read from memory", delta.read_from_memory),
      ...links("Citations", thought.citations),
      ...facts("Cost", [
        ["this step", dollars(delta.cost)],
        ["session so far", dollars(delta.cumulative_session_cost)],
        [
          "tokens",
          typeof delta.tokens_consumed === "number" ? delta.tokens_consumed.toLocaleString("en") : "",
        ],
      ]),
      ...facts("Confidence", [
        ["confidence", percent(thought.confidence_score)],
        ["entropy", thought.entropy_score],
        ["strategy", thought.strategy_used],
      ]),
      ...facts("Agent", [
        ["agent", who.agent_id],
        ["type", who.agent_type],
        ["version", who.capability_version],
        ["model", [word(who.model), word(who.provider)].filter(Boolean).join(", ")],
        ["cluster", meta.cluster_id],
      ]),
    ],
  };
}

type ToStory = (payload: Free) => Story;

const STORIES: Record<string, ToStory> = {
  decision_request: (payload) => ({
    does: "asks for a decision",
    blocks: [
      ...lead(payload.title),
      ...text("Description", payload.description),
      ...lines(
        "Options",
        many(payload.options).map((one) => {
          const { option_id, label, risk_level, is_default } = free(one);
          const more = [word(risk_level) && `${word(risk_level)} risk`, is_default === true && "the default"];
          return `${word(label) || word(option_id)}${more.some(Boolean) ? ` (${more.filter(Boolean).join(", ")})` : ""}`;
        }),
      ),
      ...facts("Deadline", [
        ["deadline", when(payload.deadline)],
        [
          "then",
          word(free(payload.auto_action).option_id) &&
            `${word(free(payload.auto_action).option_id)} automatically`,
        ],
      ]),
      ...links("Context", payload.context_refs),
      ...facts("Decision", [["decision", payload.decision_id]]),
    ],
  }),
  decision_response: (payload) => ({
    does: "decides",
    blocks: [
      ...lead(payload.selected_option_id),
      ...text("Respondent's note", payload.respondent_note),
      ...facts("Details", [
        ["decided", when(payload.responded_at)],
        ["via", payload.response_method],
        ["decision", payload.decision_id],
      ]),
    ],
  }),
  status_alert: (payload) => ({
    does: "raises an alert",
    blocks: [
      ...lead(payload.title),
      ...facts("Severity", [
        ["severity", payload.severity],
        ["category", payload.category],
        ["asks for action", yes(payload.actionable, "yes")],
        ["alert", payload.alert_id],
      ]),
      ...text("Summary", payload.summary),
      ...text("Details", free(payload.detail).content),
    ],
  }),
  artifact_share: (payload) => ({
    does: "shares an artifact",
    blocks: [
      ...lead(payload.title),
      ...facts("Artifact", [
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
      ...links("Location", payload.uri ? [word(payload.uri)] : []),
      ...text("Content", payload.content),
      ...links("Related", payload.related_refs),
    ],
  }),
  action_confirmation: (payload) => ({
    does: "confirms an action",
    blocks: [
      ...lead(payload.title ?? payload.action_type),
      ...facts("Result", [
        ["status", payload.status],
        ["action", payload.action_type],
        ["began", when(free(payload.detail).started_at)],
        ["ended", when(free(payload.detail).completed_at)],
        ["took", took(free(payload.detail).duration_ms)],
        ["decided by", free(payload.triggered_by).decision_id],
        ["can be rolled back", yes(payload.rollback_available, "yes")],
      ]),
      ...text("Summary", payload.summary),
      ...json("Before", payload.before_state),
      ...json("After", payload.after_state),
    ],
  }),
  heartbeat: (payload) => {
    const task = free(payload.current_task);
    const used = free(payload.resource_usage);
    return {
      does: "sends a heartbeat",
      blocks: [
        ...lead(payload.agent_status),
        ...text("Task", task.description),
        ...facts("Progress", [
          ["done", typeof task.progress_pct === "number" ? `${task.progress_pct} %` : ""],
          ["ready", when(task.estimated_completion)],
          ["task", task.task_id],
        ]),
        ...facts("Last 24 hours", [
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
      ...facts("Details", [
        ["format", payload.format],
        ["answers", payload.reply_to],
      ]),
    ],
  }),
  system_event: (payload) => ({
    does: "reports a platform event",
    blocks: [
      ...lead(payload.event_type),
      ...text("Reason", payload.reason),
      ...facts("Affected", [
        ["entity", payload.entity_id],
        ["event", payload.event_id],
      ]),
      ...json("Details", payload.detail),
    ],
  }),
};

/** Null for an unknown type: it is shown as raw JSON. */
export function storyOf(type: string, message: unknown): Story | null {
  if (!isFree(message)) return null;
  if (type === "decision_log") return decisionLog(message);
  const toStory = Object.hasOwn(STORIES, type) ? STORIES[type] : undefined;
  return toStory && isFree(message.payload) ? toStory(message.payload) : null;
}

/** A link only for http and https; other schemes stay text. */
export function hrefOf(uri: string): string | null {
  return /^https?:\/\//i.test(uri) ? uri : null;
}
