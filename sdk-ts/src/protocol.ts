// Written by tools/windows_types.py from schemas/openapi.json; never edited by hand.

export type Accepted = {
  message_id: string;
  sequence_number: number;
  session_id: string;
  state: "forwarded" | "held" | "refused" | "rejected";
  status?: "accepted";
  step_id: string;
  warnings?: string[];
};

export type AckIds = {
  ids: string[];
};

export type Action = {
  duration_ms?: number | null;
  status: "failure" | "pending" | "skipped" | "success";
  tool_call?: string | null;
  tool_input?: string | null;
  tool_output_summary?: string | null;
};

export type ActionConfirmation = {
  action_id: string;
  action_type: string;
  after_state?: Record<string, unknown> | null;
  before_state?: Record<string, unknown> | null;
  detail?: ActionDetail | null;
  rollback_available?: boolean | null;
  status: "failure" | "rollback" | "success";
  summary?: string | null;
  title?: string | null;
  triggered_by?: TriggeredBy | null;
};

export type ActionConfirmationEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "action_confirmation";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: ActionConfirmation;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type ActionDetail = {
  completed_at?: string | null;
  duration_ms?: number | null;
  started_at?: string | null;
};

export type AgentItem = {
  agent_id: string;
  agent_type: string | null;
  capabilities: string[];
  capability_version: string | null;
  certificate: string | null;
  cluster_id: string | null;
  colour: string;
  display_name: string;
  entity_id: string;
  entity_type: "agent";
  evicted_at: string | null;
  first_seen_at: string;
  ghost: boolean;
  granted: string[];
  hub_address: string | null;
  last_heartbeat_at: string | null;
  last_seen_at: string | null;
  liveness: "evicted" | "healthy" | "unknown" | "zombie";
  mark: string;
  messages: number;
  model: string | null;
  owner: string | null;
  paused_at: string | null;
  paused_by: string | null;
  provider: string | null;
  requested: string[];
  state: "active" | "alert_entropy" | "blocked" | "dead" | "idle" | "schema_violation";
  state_reason: string;
  status: string | null;
  task: Record<string, unknown> | null;
  team_id: string | null;
  tenant_id: string;
  trust_level: "federation_verified" | "tenant_verified" | "unverified";
  usage: Record<string, unknown> | null;
  workspace_id: string | null;
};

export type Alternative = {
  option: string;
  why_not?: string | null;
};

export type AutoAction = {
  option_id: string;
  trigger: "deadline_expired";
};

export type Citation = {
  label?: string | null;
  ref_type?: string | null;
  uri: string;
};

export type Cognition = {
  alternatives?: Alternative[] | null;
  citations?: (string | Citation)[] | null;
  confidence_score?: number | null;
  entropy_score?: number | null;
  intent: string;
  reasoning_chain?: string[] | null;
  strategy_used?: string | null;
};

export type ContextRef = {
  label?: string | null;
  ref_type?: string | null;
  uri: string;
};

export type Control = {
  gateway_away?: boolean | null;
  hitl_required?: boolean | null;
  interrupt_signal?: "inject" | "pause" | "rewrite" | null;
  is_terminal?: boolean | null;
};

export type DecisionLog = {
  action: Action;
  cognition?: Cognition | null;
  control?: Control | null;
  identity: Identity;
  meta: Meta;
  state_delta?: StateDelta | null;
};

export type DecisionOption = {
  is_default?: boolean | null;
  label: string;
  option_id: string;
  risk_level?: "critical" | "high" | "low" | "medium" | null;
};

export type DecisionRequest = {
  auto_action?: AutoAction | null;
  context_refs?: ContextRef[] | null;
  deadline?: string | null;
  decision_id: string;
  description?: string | null;
  options: DecisionOption[];
  title: string;
};

export type DecisionRequestEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "decision_request";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: DecisionRequest;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type EndedSession = {
  ended_at: string;
  records: number;
  root: string | null;
  session_id: string;
};

export type Fault = {
  path: string;
  problem: string;
};

export type HeartbeatBody = {
  agent_id: string;
  cluster_id?: string | null;
  current_task?: Record<string, unknown> | null;
  resource_usage?: Record<string, unknown> | null;
  status?: string | null;
  timestamp?: string | null;
  type?: "heartbeat";
};

export type Identity = {
  agent_id: string;
  agent_type: string;
  capability_version: string;
  model?: string | null;
  provider?: string | null;
  recipient?: string | null;
};

export type InboxAnswer = {
  items: InboxItem[];
};

export type InboxItem = {
  body: Record<string, unknown>;
  created_at: string;
  delivery_id: string;
  kind: string;
  message: Record<string, unknown> | null;
  message_id: string | null;
  message_type: string | null;
  sender: InboxSender | null;
  sequence_number: number;
  session_id: string | null;
  traceparent: string | null;
  tracestate: string | null;
};

export type InboxSender = {
  agent_id: string;
  entity_id: string;
};

export type Meta = {
  cluster_id?: string | null;
  parent_step_id?: string | null;
  parent_step_ids?: string[] | null;
  session_id?: string | null;
  step_id?: string | null;
  timestamp: string;
  trace_id: string;
};

export type NewAgent = {
  agent_id: string;
  agent_type?: string | null;
  capabilities?: string[] | null;
  cluster_id?: string | null;
  display_name?: string | null;
  hub_address?: string | null;
  model?: string | null;
  owner?: string | null;
  provider?: string | null;
  team_id?: string | null;
  workspace_id?: string | null;
};

export type NewSessionThought = {
  agent_id?: string | null;
  audit_event_ids?: string[];
  content: Record<string, unknown>;
  record_id?: string | null;
  references?: string[];
  task_id: string;
  type: string;
};

export type NewThought = {
  agent_id?: string | null;
  audit_event_ids?: string[];
  content: Record<string, unknown>;
  record_id?: string | null;
  references?: string[];
  session_id?: string | null;
  task_id: string;
  type: string;
};

export type NewThoughtSession = {
  agent_id?: string | null;
  intent: string;
  predecessor_session_id?: string | null;
  session_id?: string | null;
  task_id?: string | null;
};

export type Party = {
  entity_id: string;
  entity_type: "agent" | "system" | "user";
  hub_address?: string | null;
};

export type RecordedThought = {
  audit_event_id: string;
  chain_hash: string;
  content_hash: string;
  created_at: string;
  index: number;
  parent_chain_hash: string;
  record_id: string;
  session_id: string;
  task_id: string;
  type: string;
};

export type Refused = {
  cap?: string | null;
  detail?: string | null;
  reason: string;
  rule_id?: string | null;
  status?: "refused";
};

export type Rejected = {
  faults?: Fault[];
  raw_payload_hash?: string | null;
  reason: string;
  status?: "rejected";
};

export type SealAnswer = {
  genesis: string;
  last_chain_hash: string;
  root: string;
  sealed_at: string;
  size: number;
};

export type StartedSession = {
  genesis: string;
  proof_grade: boolean;
  session_id: string;
  started_at: string;
  task_id: string;
};

export type StateDelta = {
  added_to_memory?: string[] | null;
  cost?: number | null;
  cumulative_session_cost?: number | null;
  read_from_memory?: string[] | null;
  tokens_consumed?: number | null;
};

export type TriggeredBy = {
  decision_id?: string | null;
};
