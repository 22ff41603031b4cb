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

export type AckResult = {
  acked: string[];
  unknown: string[];
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

export type AgentCertificate = {
  agent_id: string;
  binding: BindingItem | null;
  entity_id: string;
  shown: CertificateItem | null;
};

export type AgentCertificateCounts = {
  bound: number;
  total: number;
  using: number;
  without: string[];
};

export type AgentCommanded = {
  agent_id: string;
  command: "pause" | "unpause";
  done: number;
  entity_id: string;
  intervention_id: string | null;
  sessions: RoomCommanded[];
  state: "already_paused" | "not_paused" | "paused" | "refused" | "running";
};

export type AgentCost = {
  agent_id: string | null;
  cost: number;
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

export type AgentSession = {
  active: boolean;
  cost: number;
  goal: string | null;
  held: number;
  last_at: string | null;
  last_step: string | null;
  messages: number;
  paused: boolean;
  paused_at: string | null;
  paused_by: string | null;
  session_id: string;
  status: "ended" | "looping" | "paused" | "running" | "stuck" | "waiting";
  tokens: number;
};

export type AlertDetail = {
  content: string;
  format?: "markdown" | "plain" | null;
};

export type AlertItem = {
  agent_id: string | null;
  detector: string;
  entropy_score: number | null;
  event_type: "entropy_alert" | "loop_detected";
  occurrence_count: number;
  reason: string | null;
  repeated_pattern: LoopPattern;
  sequence_number: number;
  session_id: string;
  since: string;
  window_size: number;
};

export type AlertNotice = {
  agent_id: string | null;
  at: string;
  id: string;
  kind: "budget_exceeded" | "budget_warning" | "entropy" | "eviction" | "injection" | "kill_switch" | "loop" | "rule" | "status_alert" | "violation";
  link: string;
  open: boolean;
  sequence_number: number;
  session_id: string | null;
  severity: "critical" | "error" | "info" | "warning";
  text: string;
  until: string | null;
};

export type AlertRuleBody = {
  compare?: "above" | "below";
  condition: "entropy" | "injection" | "violations" | "security" | "budget" | "burn_rate" | "silence" | "silent_agents" | "queue_depth" | "breaker" | "dead_letters" | "dead_letters_waiting" | "gate_age" | "chain" | "checkpoint_lag" | "certificate";
  cooldown_s?: number;
  enabled?: boolean;
  endpoint_ids?: string[];
  for_s?: number;
  name: string;
  scope?: "tenant" | "cluster" | "capability" | "agent" | "session" | "budget" | "log" | "certificate" | null;
  severity?: "info" | "warning" | "error" | "critical" | null;
  target?: string | null;
  threshold?: number | null;
  was?: string | null;
  window_s?: number | null;
};

export type Aligned = {
  band: number | null;
  exact: boolean;
};

export type AllowedAction = {
  allowed: boolean;
  verb: "approve" | "cancel" | "edit" | "reject" | "respond" | "review";
  why: string | null;
};

export type Alternative = {
  option: string;
  why_not?: string | null;
};

export type AnnotationItem = {
  annotation_id: string;
  author_id: string;
  category: string | null;
  created_at: string;
  label: string | null;
  sequence_number: number;
  session_id: string;
  step_id: string | null;
  text: string;
};

export type AnnotationList = {
  items: AnnotationItem[];
  next_cursor: string | null;
};

export type ArmedKillSwitch = {
  confirmations_left: number;
  created_at: string;
  engaged_at: string | null;
  expires_at: string | null;
  kill_id: string;
  reason: string;
  released_at: string | null;
  requested_by: string;
  scope: "agent" | "class" | "cluster" | "global";
  state: "armed" | "confirmed" | "engaged" | "lapsed" | "released" | "releasing";
  target: string | null;
  token: string;
  would_hold: WouldHold;
};

export type ArtifactShare = {
  artifact_id: string;
  artifact_type: "code" | "data" | "file" | "image";
  content?: string | null;
  language?: string | null;
  media_type?: string | null;
  related_refs?: (string | ContextRef)[] | null;
  sha256?: string | null;
  size_bytes?: number | null;
  title: string;
  uri?: string | null;
};

export type ArtifactShareEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "artifact_share";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: ArtifactShare;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type AtGate = {
  agent_id: string;
  digest?: string | null;
  message_id?: string | null;
  note?: string | null;
};

export type AttemptItem = {
  at: string;
  attempt: number;
  code: number | null;
  detail: string;
  excerpt: string;
  ok: boolean;
  signed_with: number[];
  took_ms: number;
};

export type AuditEvent = {
  attributes: Record<string, unknown>;
  audit_event_id: string;
  body: Record<string, unknown>;
  hash_chain: HashChain;
  observed_timestamp: string;
  parent_span_id: string | null;
  resource: Record<string, unknown>;
  severity_number: number;
  severity_text: string;
  span_id: string;
  timestamp: string;
  trace_flags?: number;
  trace_id: string;
};

export type AutoAction = {
  option_id: string;
  trigger: "deadline_expired";
};

export type BindingBody = {
  kind?: "fingerprint" | "uri" | "dns" | "subject" | null;
  pem?: string | null;
  value?: string | null;
};

export type BindingItem = {
  bound_at: string;
  bound_by: string;
  kind: "dns" | "fingerprint" | "subject" | "uri";
  value: string;
};

export type BlastAnswer = {
  agents: TaintedAgent[];
  containment: ContainmentItem;
  counts: BlastCounts;
  facts: LaterFact[];
  first_at: string;
  last_at: string;
  next_cursor: string | null;
  note: string;
  origin: StepPlace;
  sessions: string[];
  side_effects: SideEffect[];
  spend: Spend;
  steps: TaintedStep[];
  truncated: boolean;
};

export type BlastCounts = {
  agents: number;
  deepest: number;
  facts: number;
  sessions: number;
  side_effects: number;
  strong_steps: number;
  weak_steps: number;
};

export type BranchItem = {
  agent_id: string | null;
  agents: AgentCost[];
  branch_cost: number;
  cost: number;
  cost_5m: number;
  depth: number;
  intent: string | null;
  parent: string | null;
  sequence_number: number;
  share: number;
  step: string;
  step_id: string;
  steps: number;
};

export type BreakerItem = {
  capability: string;
  failures: number;
  forced_by: string | null;
  opened_at: string | null;
  reason: string | null;
  state: "closed" | "half_open" | "open";
  successes: number;
  window_started_at: string;
};

export type BudgetBody = {
  hard?: number | null;
  period?: "none" | "daily" | "monthly";
  scope: "tenant" | "cluster" | "session" | "agent";
  soft?: number | null;
  target?: string | null;
  was?: BudgetCaps | null;
};

export type BudgetBurn = {
  budget_id: string;
  hard: number | null;
  hard_at: string | null;
  hard_in_s: number | null;
  hottest: Hottest | null;
  per_min_1h: number;
  per_min_5m: number;
  period: "daily" | "monthly" | "none";
  remaining: number | null;
  resets_at: string | null;
  scope: "agent" | "cluster" | "session" | "tenant";
  share: number;
  soft: number | null;
  soft_at: string | null;
  soft_in_s: number | null;
  spent: number;
  target: string;
  whose: string | null;
};

export type BudgetCaps = {
  hard?: number | null;
  soft?: number | null;
};

export type BudgetItem = {
  budget_id: string;
  hard: number | null;
  period: "daily" | "monthly" | "none";
  period_started_at: string | null;
  remaining: number | null;
  resets_at: string | null;
  scope: "agent" | "cluster" | "session" | "tenant";
  share: number;
  soft: number | null;
  spender: string | null;
  spent: number;
  target: string;
  updated_at: string;
  updated_by: string;
  warned_by: number | null;
};

export type Burn = {
  per_min_1h: number;
  per_min_5m: number;
};

export type BurnAnswer = {
  agents: BurnItem[];
  as_of: string;
  budgets: BudgetBurn[];
  clusters: BurnItem[];
  sessions: BurnItem[];
  tenant: Burn;
};

export type BurnItem = {
  id: string | null;
  per_min_1h: number;
  per_min_5m: number;
};

export type BusHealth = {
  address?: string | null;
  away_since?: string | null;
  connected: boolean;
  kind: "memory" | "nats";
  last_error?: string | null;
  status: "degraded" | "down" | "ok";
  text: string;
};

export type CallReceipt = {
  call_id: string;
  message_id?: string | null;
  outcome: "answered" | "forwarded" | "held" | "ignored" | "not_taken" | "refused" | "taken" | "turned_away" | "unmapped";
  repeated?: boolean;
  session_id?: string | null;
  status?: string;
};

export type CapabilityItem = {
  breaker: "closed" | "half_open" | "open" | null;
  capability: string;
  clusters: Record<string, number>;
  evicted: number;
  healthy: number;
  is_agent_type: boolean;
  models: Record<string, number>;
  total: number;
  trust_levels: Record<string, number>;
  unknown: number;
  versions: Record<string, number>;
  weights: Record<string, number> | null;
  zombie: number;
};

export type CascadeEdge = {
  fact_id: string | null;
  from_sequence_number: number;
  from_step: string | null;
  kind: "exact" | "inferred" | "message" | "near" | "origin" | "parent" | "read" | "span";
  weight: number;
};

export type Category = {
  category: string;
  family: string;
  meaning: string;
};

export type CategoryList = {
  items: Category[];
  next_cursor: string | null;
};

export type CauseItem = {
  agent_id: string | null;
  at: string;
  distance: number;
  path: PathStep[];
  path_cut: boolean;
  rank: number;
  reasons: CauseReason[];
  score: number;
  sequence_number: number;
  session_id: string | null;
  status: string | null;
  step: string | null;
  tool: string | null;
};

export type CauseReason = {
  points: number;
  sign: string;
  text: string;
};

export type CausesAnswer = {
  ancestors: number;
  items: CauseItem[];
  note: string;
  step: StepPlace;
  truncated: boolean;
};

export type CertificateItem = {
  agents: string[];
  bound: string[];
  days_left: number;
  fingerprint: string;
  first_seen_at: string | null;
  in_use: boolean;
  issuer: string;
  key_ids: string[];
  last_seen_at: string | null;
  names: string[];
  not_after: string;
  not_before: string;
  serial: string;
  standing: "current" | "expired" | "expiring" | "not_yet";
  subject: string;
  use: "authority" | "client" | "server";
};

export type CertificatesAnswer = {
  agents: AgentCertificateCounts;
  items: CertificateItem[];
  next_cursor: string | null;
  tls: TlsStatus;
};

export type ChainVerdict = {
  first_broken_index: number | null;
  records: number;
  shredded?: number;
  valid: boolean;
};

export type ChangeJobBody = {
  at?: string | null;
  cron?: string | null;
  grace_s?: number;
  intent: string;
  jitter_s?: number;
  max_tries?: number;
  misfire?: "skip" | "run_once" | "run_all";
  name: string;
  overlap?: "allow" | "skip" | "queue";
  payload?: Record<string, unknown>;
  session_id?: string | null;
  target: JobTarget;
  was?: string | null;
  zone?: string;
};

export type ChangedRule = {
  confirm?: boolean;
  deadline_s?: number | null;
  effect: "allow" | "deny" | "hold";
  enabled?: boolean;
  match: Match;
  note?: string;
  on_expiry?: "deny" | "approve";
  quorum?: number;
  was?: RuleBody | null;
};

export type CheckpointItem = {
  checkpoint: string;
  root: string;
  signed_at: string;
  size: number;
  witnesses: LogWitness[];
};

export type CheckpointList = {
  items: CheckpointItem[];
  next_cursor: string | null;
};

export type Circuit = {
  state: "open" | "closed";
};

export type Citation = {
  label?: string | null;
  ref_type?: string | null;
  uri: string;
};

export type ClockHealth = {
  behind_record_s: number;
  farthest_next_at: string | null;
  is_firing: boolean;
  jobs_ahead: number;
  newest_event_at: string | null;
  parted_s: number;
  runs_ahead: number;
  shows: string;
  status: "degraded" | "down" | "ok";
  text: string;
};

export type ClusterPlace = {
  lat?: number | null;
  lon?: number | null;
  name?: string | null;
  region?: string | null;
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

export type Commanded = {
  after_hash?: string | null;
  agent_id: string;
  approvals?: string[] | null;
  before_hash?: string | null;
  confirmation?: string | null;
  delivery_id?: string | null;
  intervention_id?: string | null;
  message_id?: string | null;
  needed?: number | null;
  rejected?: number | null;
  released?: number | null;
  remaining?: number | null;
  sequence_number?: number | null;
  session_id: string;
  state?: string | null;
  status: string;
};

export type CompareAnswer = {
  alignment: Aligned;
  counts: Record<string, number>;
  delta: Record<string, unknown>;
  first_divergence: FirstDivergence | null;
  left: Record<string, unknown>;
  memory: Record<string, unknown>;
  right: Record<string, unknown>;
  steps: ComparedStep[];
};

export type ComparedStep = {
  change: "changed" | "left_only" | "right_only" | "same";
  cost_delta: number;
  differs: string[];
  duration_delta_ms?: number;
  left: Record<string, unknown> | null;
  right: Record<string, unknown> | null;
};

export type ConditionItem = {
  condition: "breaker" | "budget" | "burn_rate" | "certificate" | "chain" | "checkpoint_lag" | "dead_letters" | "dead_letters_waiting" | "entropy" | "gate_age" | "injection" | "queue_depth" | "security" | "silence" | "silent_agents" | "violations";
  counts_events: boolean;
  scalable: boolean;
  scopes: ("agent" | "budget" | "capability" | "certificate" | "cluster" | "log" | "session" | "tenant")[];
  text: string;
  threshold: number;
  unit: string;
  window_s: number | null;
};

export type Confirmation = {
  token: string;
};

export type ConfirmedKillSwitch = {
  confirmations_left: number;
  created_at: string;
  engaged_at: string | null;
  expires_at: string | null;
  kill_id: string;
  reason: string;
  released_at: string | null;
  requested_by: string;
  scope: "agent" | "class" | "cluster" | "global";
  state: "armed" | "confirmed" | "engaged" | "lapsed" | "released" | "releasing";
  target: string | null;
  token?: string | null;
  told?: number | null;
};

export type ConflictItem = {
  more_holders?: number | null;
  more_values?: number | null;
  note?: string | null;
  reconciled: Reconciled | null;
  scope: string;
  sides: SideItem[];
  subject: string;
};

export type ConsistencyAnswer = {
  checkpoint: string | null;
  from: number;
  from_root: string;
  hashes: string[];
  origin: string;
  tenant_id: string;
  to: number;
  to_root: string;
  vkeys: string[];
};

export type ContainmentItem = {
  agents: PausedAgent[];
  already_halted: (string | null)[];
  contained: boolean;
  edges_since: string;
  exact: boolean;
  note: string;
  pause: PauseCommand[];
  reached: (string | null)[];
  reached_count: number;
  smaller: SmallerContainment | null;
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

export type CostItem = {
  cost: number;
  id: string | null;
  messages: number;
  share: number;
  tokens: number;
};

export type CostsAnswer = {
  by: "agent" | "cluster" | "model" | "session" | "tool" | "type";
  items: CostItem[];
  next_cursor: string | null;
  since: string;
  total: Record<string, number>;
  until: string;
};

export type Counts = {
  copies: number;
  later_facts: number;
  strong_steps: number;
  weak_steps: number;
};

export type CurrentTask = {
  description?: string | null;
  estimated_completion?: string | null;
  progress_pct?: number | null;
  task_id: string;
};

export type DagAgent = {
  agent_id: string;
  agent_type: string | null;
  badge: "Terminal" | "Thinking" | "Tool Executing" | "Waiting";
  badge_rule: number;
  cost: number;
  last_step: string;
  steps: number;
  tokens: number;
};

export type DagAnswer = {
  after: number | null;
  agents: DagAgent[];
  as_of: string;
  edges: DagEdge[];
  nodes: DagNode[];
  refused_edges: RefusedEdge[];
  roots: string[];
  session_id: string;
  summary: Record<string, number>;
  truncated: boolean;
  version: number;
};

export type DagEdge = {
  from: string;
  kind: "attached" | "declared" | "inferred" | "intervention" | "late" | "span";
  to: string;
};

export type DagNode = {
  acknowledged_at?: string | null;
  after_hash?: string | null;
  agent_id: string | null;
  agent_type?: string | null;
  at: string;
  badge?: "Terminal" | "Thinking" | "Tool Executing" | "Waiting";
  before_hash?: string | null;
  branch_cost?: number;
  command?: string;
  confidence?: number | null;
  confirmed_at?: string | null;
  cost?: number;
  depth?: number;
  entropy_score?: number | null;
  flags?: string[];
  gate?: "approved" | "none" | "open" | null;
  held_because?: string | null;
  hitl_required?: boolean;
  id: string;
  intent?: string | null;
  is_root?: boolean;
  is_terminal?: boolean;
  kind: "intervention" | "step";
  low_confidence?: boolean;
  message_id?: string;
  message_type: string;
  operator_id?: string;
  orphan?: boolean;
  parent?: string | null;
  proven?: boolean | null;
  reversed_at?: string | null;
  sequence_number: number;
  state?: "forwarded" | "held" | "refused" | "rejected";
  status?: string | null;
  step_id?: string;
  tokens?: number | null;
  tool?: string | null;
  version: number;
};

export type DatabaseHealth = {
  dialect: "postgresql" | "sqlite";
  ping_ms: number | null;
  size_bytes: number | null;
  status: "degraded" | "down" | "ok";
  text: string;
};

export type DeadLetterItem = {
  created_at: string;
  ended_at: string | null;
  ended_by: string | null;
  kind: "job" | "webhook";
  letter_id: string;
  preview: string;
  reason: string;
  source_id: string;
  source_name: string;
  state: "dead" | "discarded" | "retried";
  subject_id: string;
};

export type DeadLetterPage = {
  items: DeadLetterItem[];
  next_cursor: string | null;
};

export type DecisionItem = {
  action_id: string | null;
  agent_id: string | null;
  answered_at: string | null;
  answered_by: string | null;
  auto_option_id: string | null;
  context_refs: ContextRef[];
  deadline: string | null;
  decision_id: string;
  description: string | null;
  entity_id: string | null;
  message_id: string | null;
  options: DecisionOption[];
  requested_at: string;
  response_sequence_number: number | null;
  risk: "critical" | "high" | "low" | "medium" | null;
  selected_option_id: string | null;
  sequence_number: number;
  session_id: string;
  state: "answered" | "cancelled" | "executing" | "expired" | "failed" | "pending" | "succeeded";
  title: string | null;
  updated_at: string;
  user_id: string;
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

export type DecisionResponse = {
  decision_id: string;
  responded_at?: string | null;
  respondent_note?: string | null;
  response_method?: string | null;
  selected_option_id: string;
};

export type DecisionResponseBody = {
  respondent_note?: string | null;
  response_method?: string;
  selected_option_id: string;
};

export type DecisionResponseEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "decision_response";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: DecisionResponse;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type DecisionSettingsAnswer = {
  auto_needs_default?: boolean;
  auto_risk?: "critical" | "high" | "low" | "medium" | "none";
  min_deadline_s?: number;
  updated_at?: string | null;
  updated_by?: string | null;
};

export type DefaultsBody = {
  endpoint_ids?: string[];
};

export type DeliveryDetail = {
  attempts: number;
  created_at: string;
  delivery_id: string;
  ended_at: string | null;
  endpoint_id: string;
  event_type: string;
  last_code: number | null;
  last_detail: string | null;
  next_try_at: string | null;
  payload: string | null;
  sequence_number: number;
  state: "dead" | "delivered" | "waiting";
  tries: AttemptItem[];
};

export type DeliveryItem = {
  attempts: number;
  created_at: string;
  delivery_id: string;
  ended_at: string | null;
  endpoint_id: string;
  event_type: string;
  last_code: number | null;
  last_detail: string | null;
  next_try_at: string | null;
  sequence_number: number;
  state: "dead" | "delivered" | "waiting";
};

export type DeliveryList = {
  items: DeliveryItem[];
  next_cursor: string | null;
};

export type Destination = {
  agent?: string | Expression | null;
  capability?: string | Expression | null;
  cluster?: string | Expression | null;
};

export type DetectorAnswer = {
  discrepancy_gap?: number;
  injections?: InjectionSettings;
  loop_below?: number;
  loops?: LoopSettings;
  n_min?: number;
  stuck_s?: number;
  updated_at?: string | null;
  updated_by?: string | null;
  warning_up_to?: number;
  window?: number;
};

export type Disabled = {
  disabled: boolean;
  user_id: string;
};

export type Dismissal = {
  note?: string | null;
};

export type DivergenceItem = {
  agent_id: string | null;
  agent_type: string;
  calls: number;
  distance: number;
  peers: number;
  threshold: number;
  tools: Record<string, number>;
  usual_tools: Record<string, number>;
};

export type DriftAnswer = {
  conflicts: ConflictItem[];
  divergences: DivergenceItem[];
  since: string;
  truncated: boolean;
};

export type DryRun = {
  minutes?: number;
  rule?: TriedRule | null;
  rules?: TriedRule[] | null;
};

export type DryRunAnswer = {
  agents: number;
  by_agent: StoppedAgent[];
  by_rule: TriedPolicy[];
  capped: boolean;
  denied: number;
  examples: StoppedMessage[];
  held: number;
  looked_at: number;
  minutes: number;
  since: string;
  stoppable: number;
  unreadable: number;
};

export type EdgeItem = {
  from: string | null;
  from_entity_id: string | null;
  latency_p50_ms: number | null;
  latency_p95_ms: number | null;
  messages: number;
  messages_60s: number;
  rate_per_s: number;
  reason: string | null;
  status: "Alert" | "Blocked" | "Healthy";
  to: string | null;
  to_entity_id: string | null;
  unacknowledged: number;
};

export type Editing = {
  agent_id: string;
  digest?: string | null;
  message_id?: string | null;
  new_content: Record<string, unknown>;
  note?: string | null;
};

export type EndedLogin = {
  ended: boolean;
  login_id: string;
};

export type EndedSession = {
  ended_at: string;
  records: number;
  root: string | null;
  session_id: string;
};

export type EnforcingGateway = {
  has_obeyed: boolean;
  is_live: boolean;
  last_tick_at: string;
  name: string;
};

export type Evicted = {
  agent_id: string;
  entity_id: string;
  evicted: boolean;
};

export type EvidenceItem = {
  fact_id: string | null;
  from_sequence_number: number;
  from_step: string | null;
  kind: "declared" | "derived" | "descent" | "exact" | "message" | "near" | "source";
  weight: number;
};

export type ExportPlan = {
  bytes_about: number;
  events: number;
  exact: boolean;
  file: string;
  first_at: string;
  from_sequence: number;
  head: number;
  last_at: string;
  messages_about: number;
  payloads: boolean;
  signed: boolean;
  tenant_id: string;
  to_sequence: number;
};

export type ExporterChangeBody = {
  filters?: Filters | null;
  headers?: Record<string, string> | null;
  name?: string | null;
  protocol?: "http" | "grpc" | null;
  url?: string | null;
  was?: string | null;
};

export type ExporterItem = {
  created_at: string;
  created_by: string;
  cursor: number;
  exporter_id: string;
  failures: number;
  filtered: number;
  filters: Filters;
  headers: string[];
  lag_events: number;
  lag_s: number | null;
  last_sent_at: string | null;
  name: string;
  next_try_at: string | null;
  problem: string | null;
  problem_at: string | null;
  protocol: "grpc" | "http";
  refused: number;
  sent: number;
  status: "behind" | "caught_up" | "failing" | "paused";
  updated_at: string;
  url: string;
};

export type ExporterRemoved = {
  exporter_id: string;
  removed: boolean;
};

export type ExporterTested = {
  detail: string;
  exporter_id: string;
  outcome: "later" | "refused" | "taken";
  rejected: number;
};

export type ExportersAnswer = {
  items: ExporterItem[];
  next_cursor: string | null;
};

export type Expression = {
  expression: string;
};

export type FacetValue = {
  count: number;
  value: string;
};

export type Facets = {
  agent: FacetValue[];
  session: FacetValue[];
  state: FacetValue[];
  status: FacetValue[];
  tool: FacetValue[];
  type: FacetValue[];
};

export type FactItem = {
  agent_id: string | null;
  at: string;
  cluster_id: string | null;
  fact_id: string;
  marked_false: Mark | null;
  sequence_number: number;
  session_id: string | null;
  step: string | null;
  subject: string | null;
  text: string;
  uses: number;
  value: string | null;
};

export type FalseMark = {
  note?: string | null;
};

export type Fault = {
  path: string;
  problem: string;
};

export type FilterItem = {
  field: string;
  negated: boolean;
  op: "<" | "<=" | ">" | ">=" | "in";
  values: (string | number)[];
};

export type Filters = {
  agents?: string[];
  event_types?: string[];
  severity_min?: number;
};

export type FirstDivergence = {
  change: "changed" | "left_only" | "right_only" | "same";
  cost_delta: number;
  differs: string[];
  duration_delta_ms?: number;
  index: number;
  left: Record<string, unknown> | null;
  right: Record<string, unknown> | null;
};

export type FleetAnswer = {
  agents: number;
  aggregated: boolean;
  alarms: HudAlarm[];
  as_of: string;
  edges: FleetEdge[];
  edges_count: number;
  folded_until: string | null;
  forks: ForkItem[];
  groups: FleetGroup[];
  groups_count: number;
  layers: FleetLayer[];
  layout: "geographic" | "logical";
  level: "agent" | "cluster" | "group";
  minute: Record<string, string> | null;
  nodes: FleetNode[];
  note: string | null;
  replayed: boolean;
  throughput: Throughput;
  unplaced: string[];
};

export type FleetEdge = {
  address: string | null;
  edges: number;
  failures: number;
  from: string;
  kinds: ("causal" | "message")[];
  latency_mean_ms: number | null;
  latency_p50_ms: number | null;
  latency_p95_ms: number | null;
  messages: number;
  messages_60s: number;
  rate_per_s: number;
  reason: string | null;
  status: "Alert" | "Blocked" | "Healthy";
  to: string | null;
  unacknowledged: number;
};

export type FleetGroup = {
  agent_type: string | null;
  agents: number;
  alarms: GroupAlarm[];
  alarms_count: number;
  cluster_id: string | null;
  colour: string;
  cost_per_min: number;
  failures_60s: number;
  flashing: boolean;
  ghosts: number;
  id: string;
  internal_per_s: number;
  level: "agent" | "cluster" | "group";
  mark: string;
  messages_60s: number;
  name: string;
  rate_per_s: number;
  region: RegionItem | null;
  shape: string;
  state: "active" | "alert_entropy" | "blocked" | "dead" | "idle" | "schema_violation";
  states: Record<string, number>;
};

export type FleetHealth = {
  as_of: string;
  bus: BusHealth;
  clock: ClockHealth;
  database: DatabaseHealth;
  gateway: GatewayHealth;
  insight: InsightHealth;
  log: LogHealth;
  status: "degraded" | "down" | "ok";
};

export type FleetLayer = {
  agents: number;
  clusters?: string[];
  colour: string;
  cost_per_min: number;
  failures_60s: number;
  flashing: boolean;
  ghosts: number;
  id: string;
  lat?: number;
  lon?: number;
  mark: string;
  messages_60s: number;
  name: string;
  rate_per_s: number;
  shape: string;
  state: "active" | "alert_entropy" | "blocked" | "dead" | "idle" | "schema_violation";
  states: Record<string, number>;
};

export type FleetNode = {
  agent_id: string;
  agent_type: string | null;
  alarms: NodeAlarm[];
  cluster_id: string | null;
  colour: string;
  cost_per_min: number;
  entity_id: string;
  failures_60s: number;
  flashing: boolean;
  ghost: boolean;
  id: string;
  last_seen_at: string | null;
  liveness: "evicted" | "healthy" | "unknown" | "zombie";
  mark: string;
  messages_60s: number;
  name: string;
  rate_per_s: number;
  reason: string;
  region?: RegionItem | null;
  rule: number;
  shape: string;
  state: "active" | "alert_entropy" | "blocked" | "dead" | "idle" | "schema_violation";
};

export type ForkItem = {
  agent_id: string | null;
  at: string;
  children: number;
  sequence_number: number;
  session_id: string | null;
  to: string[];
};

export type FromNowAnswer = {
  jobs: number;
  runs: number;
  scheduler: SchedulerItem;
};

export type GapItem = {
  agent_id: string | null;
  at: string;
  computed: number;
  gap: number;
  kind: "differs" | "fell";
  reported: number;
  sequence_number: number;
  session_id: string | null;
};

export type GapList = {
  items: GapItem[];
  next_cursor: string | null;
};

export type GatewayHealth = {
  last_commit_ok: boolean;
  live_clients: number;
  queue_limit: number;
  rate_per_s: number;
  status: "degraded" | "down" | "ok";
  text: string;
  up_since: string;
  version: string;
  waiting: number;
  waiting_bytes: number;
};

export type GrantChange = {
  grant?: string[];
  revoke?: string[];
};

export type GrantItem = {
  agent_id: string;
  capability: string;
  entity_id: string;
  granted_at: string;
  granted_by: string;
};

export type GrantsAnswer = {
  agent_id: string;
  entity_id: string;
  granted: string[];
};

export type GroupAlarm = {
  agent_id: string;
  detector: string | null;
  entropy_score: number | null;
  kind: string;
  session_id: string | null;
  severity: "critical" | "warning";
  since: string | null;
  text: string | null;
};

export type HashChain = {
  event_hash: string;
  previous_hash: string;
  sequence_number: number;
};

export type Health = {
  database?: string | null;
  detail?: string | null;
  status: string;
  waiting?: number | null;
};

export type Heartbeat = {
  agent_status: string;
  current_task?: CurrentTask | null;
  resource_usage?: ResourceUsage | null;
};

export type HeartbeatAnswer = {
  agent_id: string;
  chained: boolean;
  entity_id: string;
  heartbeat_at: string;
  liveness: "healthy";
  status: string | null;
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

export type HeartbeatEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "heartbeat";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: Heartbeat;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type HeatRow = {
  id: string | null;
  total: number;
  values: number[];
};

export type HeatmapAnswer = {
  bucket: "hour" | "minute";
  by: "agent" | "cluster" | "session";
  columns: string[];
  max: number;
  others: number[];
  rows: HeatRow[];
  total: number;
  totals: number[];
};

export type HoldItem = {
  action_digest: string;
  agent_id: string | null;
  approvals: string[];
  cause: "ancestor" | "gate" | "kill" | "order" | "pause";
  deadline: string | null;
  entity_id: string | null;
  gate: "approved" | "none" | "open";
  held_at: string;
  key_maker: string | null;
  message_id: string;
  message_type: string;
  on_expiry: "approve" | "deny";
  quorum: number;
  reason: string;
  requested_by: string;
  rewritten: boolean;
  sequence_number: number;
  session_id: string;
  step_id: string;
  waits_for: number[];
};

export type Holder = {
  agent_id: string | null;
  at: string;
  fact_id: string;
  sequence_number: number;
  session_id: string | null;
  step: string | null;
  text: string;
};

export type HookCallItem = {
  at: string;
  body_bytes: number | null;
  body_hash: string | null;
  call_id: string;
  caller: string | null;
  calls: number;
  delivery_id: string | null;
  headers: Record<string, string>;
  hook_id: string;
  message_id: string | null;
  outcome: "answered" | "forwarded" | "held" | "ignored" | "not_taken" | "refused" | "taken" | "turned_away" | "unmapped";
  reason: string | null;
  repeated_at: string | null;
  repeats: number;
  session_id: string | null;
  signature: "invalid" | "missing" | "valid";
};

export type HookCallList = {
  items: HookCallItem[];
  next_cursor: string | null;
};

export type HookCallWhole = {
  at: string;
  body: string | null;
  body_bytes: number | null;
  body_cut: boolean;
  body_hash: string | null;
  call_id: string;
  caller: string | null;
  calls: number;
  delivery_id: string | null;
  headers: Record<string, string>;
  hook_id: string;
  message_id: string | null;
  outcome: "answered" | "forwarded" | "held" | "ignored" | "not_taken" | "refused" | "taken" | "turned_away" | "unmapped";
  reason: string | null;
  repeated_at: string | null;
  repeats: number;
  session_id: string | null;
  signature: "invalid" | "missing" | "valid";
};

export type HookChange = {
  mapping?: HookMapping | null;
  name?: string | null;
  state?: "active" | "disabled" | null;
  was?: string | null;
  window_s?: number | null;
};

export type HookItem = {
  created_at: string;
  created_by: string;
  hook_id: string;
  last_called_at: string | null;
  mapping: HookMapping;
  name: string;
  old_secret_until: string | null;
  scheme: "github" | "slack" | "standard" | "stripe";
  signatures: HookSignatures;
  state: "active" | "disabled";
  updated_at: string;
  updated_by: string;
  url: string;
  window_s: number;
};

export type HookList = {
  items: HookItem[];
  next_cursor: string | null;
};

export type HookMapping = {
  delivery_id?: string | null;
  intent: string | Expression;
  payload?: string;
  session?: string | null;
  target: Destination;
  when?: string | null;
};

export type HookRemoved = {
  hook_id: string;
  removed: boolean;
};

export type HookRotation = {
  overlap_s?: number;
  secret?: string | null;
};

export type HookSecret = {
  created_at: string;
  created_by: string;
  hook_id: string;
  last_called_at: string | null;
  mapping: HookMapping;
  name: string;
  old_secret_until: string | null;
  scheme: "github" | "slack" | "standard" | "stripe";
  secret: string;
  signatures: HookSignatures;
  state: "active" | "disabled";
  updated_at: string;
  updated_by: string;
  url: string;
  window_s: number;
};

export type HookSignatures = {
  invalid: number;
  last: "invalid" | "missing" | "valid" | null;
  missing: number;
  valid: number;
};

export type HookTarget = {
  kind: string;
  name: string;
};

export type HookTrial = {
  body: unknown;
  hook_id?: string | null;
  mapping?: HookMapping | null;
  scheme?: "standard" | "github" | "stripe" | "slack";
};

export type HookTried = {
  delivery_id?: string | null;
  fault?: Fault | null;
  intent?: string | null;
  outcome: "answered" | "forwarded" | "held" | "ignored" | "not_taken" | "refused" | "taken" | "turned_away" | "unmapped";
  payload?: Record<string, unknown> | null;
  session?: string | null;
  target?: HookTarget | null;
};

export type Hottest = {
  agent_id: string | null;
  branch: BranchItem | null;
  cost_5m: number;
  costs: string;
  session_id: string;
};

export type HudAlarm = {
  cluster_id: string | null;
  detector: string | null;
  entropy_score: number | null;
  from: string | null;
  id: string;
  kind: string;
  on: "edge" | "node";
  session_id: string | null;
  severity: "critical" | "warning";
  since: string | null;
  text: string | null;
  to: string | null;
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

export type InfectedAgent = {
  agent_id: string | null;
  cost: number;
  first: StepPlace;
  sessions: string[];
  steps: number;
  strength: "strong" | "weak";
};

export type InfectedStep = {
  agent_id: string | null;
  at: string;
  cost: number;
  evidence: EvidenceItem[];
  sequence_number: number;
  session_id: string | null;
  step: string | null;
  strength: "strong" | "weak";
  weight: number;
};

export type InfectionAnswer = {
  agents: InfectedAgent[];
  also_claimed: FactItem[];
  copies: FactItem[];
  counts: Counts;
  fact: FactItem;
  first_at: string;
  later_facts: LaterFact[];
  next_cursor: string | null;
  source: FactItem;
  spend: Spend;
  steps: InfectedStep[];
  truncated: boolean;
};

export type Injection = {
  agent_id: string;
  force?: boolean;
  prompt: string;
};

export type InjectionSettings = {
  off?: ("concealment" | "encoded" | "exfiltration" | "forged_turn" | "hidden_text" | "instruction_override" | "persona" | "prompt_extraction")[];
  on?: boolean;
};

export type InsightHealth = {
  behind: number;
  enabled: boolean;
  folded_until: string | null;
  lag_s: number | null;
  running: boolean;
  status: "degraded" | "down" | "ok";
  text: string;
};

export type InsightStatus = {
  analyst: "down" | "off" | "running";
  cursor: number;
  cursor_at: string | null;
  head: number;
  lag_messages: number;
  lag_s: number;
  restarts: number;
  skipped: number;
  unread: number;
};

export type InstructedAgent = {
  acknowledged_version: number | null;
  agent_id: string;
  connected_ever: boolean;
  entity_id: string;
  evicted: boolean;
  last_seen_at: string | null;
  pending: boolean;
};

export type InstructionsAnswer = {
  agent_type: string;
  agents: InstructedAgent[];
  created_at: string;
  created_by: string;
  history: InstructionsVersion[];
  note: string;
  text: string;
  text_hash: string;
  version: number;
};

export type InstructionsIssued = {
  agent_type: string;
  created_at: string;
  created_by: string;
  note: string;
  text: string;
  text_hash: string;
  told: number;
  version: number;
};

export type InstructionsItem = {
  acknowledged: number;
  agent_type: string;
  agents: number;
  created_at: string;
  created_by: string;
  note: string;
  text_hash: string;
  version: number;
};

export type InstructionsVersion = {
  agent_type: string;
  created_at: string;
  created_by: string;
  note: string;
  text: string;
  text_hash: string;
  version: number;
};

export type InterventionItem = {
  acknowledged_at: string | null;
  after_hash: string | null;
  agent_id: string | null;
  before_hash: string | null;
  command: "approve" | "cancel" | "edit" | "inject" | "pause" | "reject" | "rewrite" | "unpause";
  confirmation: "acknowledged" | "confirmed" | "requested" | null;
  confirmed_at: string | null;
  intervention_id: string;
  issued_at: string;
  message_id: string | null;
  note: string | null;
  operator_id: string;
  proven: boolean | null;
  reversed_at: string | null;
  sequence_number: number;
  session_id: string;
};

export type Invalid = {
  detail: string;
  faults: Fault[];
  reason?: string;
  status?: "refused";
};

export type JobBody = {
  at?: string | null;
  cron?: string | null;
  grace_s?: number;
  intent: string;
  jitter_s?: number;
  max_tries?: number;
  misfire?: "skip" | "run_once" | "run_all";
  name: string;
  overlap?: "allow" | "skip" | "queue";
  payload?: Record<string, unknown>;
  session_id?: string | null;
  target: JobTarget;
  zone?: string;
};

export type JobItem = {
  asked_by: string | null;
  at: string | null;
  created_at: string;
  created_by: string;
  cron: string | null;
  explained: string | null;
  failures: number;
  grace_s: number;
  intent: string;
  jitter_s: number;
  job_id: string;
  kind: "cron" | "once";
  last_at: string | null;
  last_outcome: "dead" | "held" | "missed" | "refused" | "sent" | "skipped" | null;
  max_tries: number;
  misfire: "run_all" | "run_once" | "skip";
  name: string;
  next_at: string | null;
  next_for: string | null;
  overlap: "allow" | "queue" | "skip";
  payload: unknown;
  runs: number;
  session_id: string | null;
  state: "active" | "done" | "paused";
  target: JobTarget;
  updated_at: string;
  updated_by: string;
  waiting: number;
  zone: string;
};

export type JobPage = {
  items: JobItem[];
  next_cursor: string | null;
};

export type JobTarget = {
  kind: "agent" | "capability" | "cluster";
  name: string;
};

export type KeyItem = {
  agent_id: string | null;
  created_at: string;
  created_by: string;
  expires_at: string | null;
  key?: string | null;
  key_id: string;
  label: string;
  public_id: string;
  revoked_at?: string | null;
  role: string;
  scopes: string[];
  tenant_id: string;
  user_id: string | null;
};

export type KillSwitchItem = {
  confirmations_left: number;
  created_at: string;
  engaged_at: string | null;
  expires_at: string | null;
  held: number;
  kill_id: string;
  reason: string;
  released_at: string | null;
  requested_by: string;
  scope: "agent" | "class" | "cluster" | "global";
  state: "armed" | "confirmed" | "engaged" | "lapsed" | "released" | "releasing";
  target: string | null;
};

export type KillSwitchList = {
  engaged: boolean;
  items: KillSwitchItem[];
  next_cursor: string | null;
};

export type KillSwitchStatus = {
  acknowledged: number;
  agents: number;
  confirmations_left: number;
  created_at: string;
  engaged_at: string | null;
  event_id: string | null;
  expires_at: string | null;
  gateways: EnforcingGateway[];
  held: number;
  kill_id: string;
  later: number;
  reason: string;
  released_at: string | null;
  requested_by: string;
  scope: "agent" | "class" | "cluster" | "global";
  state: "armed" | "confirmed" | "engaged" | "lapsed" | "released" | "releasing";
  target: string | null;
  told: number;
  unheard: UnacknowledgedAgent[];
};

export type LatencyAnswer = {
  all: LatencySpread;
  as_of: string;
  edges_ms: number[];
  measured: string;
  minutes: number;
  regions: RegionLatency[];
  sampled: number;
  truncated: boolean;
};

export type LatencySpread = {
  count: number;
  histogram: number[];
  max_ms: number | null;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
};

export type LaterFact = {
  agent_id: string | null;
  at: string;
  fact_id: string;
  sequence_number: number;
  session_id: string | null;
  step: string | null;
  strength: "strong" | "weak";
  text: string;
};

export type LeaveAnswer = {
  agent_id: string;
  session_id: string;
  state: "already_left" | "left";
};

export type Leaving = {
  agent_id: string;
};

export type LettersBody = {
  ids?: string[] | null;
  kind?: "job" | "webhook" | null;
  limit?: number;
  source_id?: string | null;
};

export type LettersDone = {
  done: string[];
  more: boolean;
  refused: NotDone[];
};

export type LevelItem = {
  breaches: boolean;
  subject: string;
  value: number;
};

export type LineItem = {
  agent_id: string | null;
  agents: AgentCost[];
  cost: number;
  depth: number;
  intent: string | null;
  sequence_number: number;
  session_id: string;
  share: number;
  step: string;
  steps: number;
  tokens: number;
};

export type LinesAnswer = {
  elsewhere: number;
  items: LineItem[];
  items_count: number;
  sessions_read: number;
  since: string;
  total: number;
  until: string;
};

export type LogAnswer = {
  checkpoint: string | null;
  detail: string | null;
  head: number;
  max_unsigned_age_s: number;
  origin: string;
  public: boolean;
  signed_at: string | null;
  size: number;
  state: "behind" | "refused" | "signed";
  tenant_id: string;
  unsigned: number;
  unsigned_age_s: number;
  url: string;
  vkey: string | null;
  vkeys: LogKey[];
  witnessed: WitnessedCheckpoint | null;
};

export type LogHealth = {
  signed_at: string | null;
  size: number;
  status: "degraded" | "down" | "ok";
  text: string;
  unsigned: number;
  unsigned_age_s: number;
};

export type LogKey = {
  created_at: string;
  current: boolean;
  since_sequence: number;
  vkey: string;
};

export type LogWitness = {
  name: string;
  seen_at: string;
};

export type LoggedDelivery = {
  attempts: number;
  created_at: string;
  delivery_id: string;
  ended_at: string | null;
  endpoint_id: string;
  endpoint_kind: "email" | "slack" | "webhook";
  endpoint_name: string;
  endpoint_removed: boolean;
  event_type: string;
  last_code: number | null;
  last_detail: string | null;
  next_try_at: string | null;
  sequence_number: number;
  state: "dead" | "delivered" | "waiting";
};

export type LoggedDeliveryList = {
  items: LoggedDelivery[];
  next_cursor: string | null;
};

export type LoginAnswer = {
  url: string;
  user_id: string;
};

export type LoginItem = {
  created_at: string;
  current: boolean;
  expires_at: string;
  key_id: string | null;
  kind: "browser" | "link";
  last_used_at: string | null;
  login_id: string;
  user_id: string;
};

export type LoopOverride = {
  cycle_rounds?: number | null;
  on?: boolean | null;
  polling_tools?: string[];
  rounds?: number | null;
};

export type LoopPattern = {
  action_status: string | null;
  intent: string | null;
  tool_call: string | null;
};

export type LoopSettings = {
  agents?: Record<string, LoopOverride>;
  calm_steps?: number;
  cycle_rounds?: number;
  likeness_pct?: number;
  on?: boolean;
  polling_tools?: string[];
  rounds?: number;
};

export type Mark = {
  marked_at: string;
  marked_by: string;
  note: string | null;
};

export type Marked = {
  fact_id: string;
  mark_id: string;
  status: string;
};

export type Match = {
  cluster?: string[];
  message_type?: string[];
  recipient?: string[];
  sender?: string[];
  tool?: string[];
};

export type MemoryItem = {
  agent_id: string | null;
  at: string;
  cluster_id: string | null;
  fact_id: string;
  held_by: "added" | "read";
  marked_false: Mark | null;
  sequence_number: number;
  session_id: string | null;
  source: StepPlace;
  source_fact_id: string;
  step: string | null;
  subject: string | null;
  text: string;
  uses: number;
  value: string | null;
};

export type MessageItem = {
  interrupt_signal: "pause" | "rewrite" | null;
  message: Record<string, unknown> | null;
  message_id: string;
  message_type: string;
  parent_inferred: boolean;
  parents: string[];
  rewritten: boolean;
  sequence_number: number;
  session_id: string;
  shredded?: ShreddedBy | null;
  state: "forwarded" | "held" | "refused" | "rejected";
  step_id: string;
};

export type MessageShredding = {
  confirm: string;
  message_id: string;
  reason: string;
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

export type MuteBody = {
  minutes: number;
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

export type NewAnnotation = {
  category?: string | null;
  label?: string | null;
  text: string;
};

export type NewExporterBody = {
  filters?: Filters;
  from?: "now" | "start" | number;
  headers?: Record<string, string>;
  name: string;
  protocol?: "http" | "grpc";
  url: string;
};

export type NewHookBody = {
  mapping: HookMapping;
  name: string;
  scheme: "standard" | "github" | "stripe" | "slack";
  secret?: string | null;
  window_s?: number;
};

export type NewInstructions = {
  note?: string;
  text: string;
  was?: number | null;
};

export type NewKey = {
  agent_id?: string | null;
  expires_at?: string | null;
  label?: string;
  role: "viewer" | "auditor" | "approver" | "operator" | "admin" | "agent";
  scopes?: ("read" | "verify" | "export" | "approve" | "operate" | "send" | "admin")[] | null;
  user_id?: string | null;
};

export type NewKillSwitch = {
  reason: string;
  scope: "global" | "cluster" | "class" | "agent";
  target?: string | null;
};

export type NewLogin = {
  user_id?: string | null;
};

export type NewPeerBody = {
  log_url?: string | null;
  name: string;
  url?: string | null;
  vkey: string;
};

export type NewRedaction = {
  name: string;
  note?: string;
  path?: string | null;
  pattern?: string | null;
  type: "builtin" | "pattern" | "field";
};

export type NewRole = {
  role: "viewer" | "auditor" | "approver" | "operator" | "admin" | "agent";
  was?: "viewer" | "auditor" | "approver" | "operator" | "admin" | "agent" | null;
};

export type NewRule = {
  confirm?: boolean;
  deadline_s?: number | null;
  effect: "allow" | "deny" | "hold";
  enabled?: boolean;
  match: Match;
  note?: string;
  on_expiry?: "deny" | "approve";
  position?: number | null;
  quorum?: number;
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

export type NewTenant = {
  display_name: string;
  tenant_id?: string | null;
};

export type NewTenantAnswer = {
  key: string;
  key_id: string;
  tenant_id: string;
  user_id: string;
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

export type NewUser = {
  display_name?: string | null;
  name: string;
  role: "viewer" | "auditor" | "approver" | "operator" | "admin" | "agent";
};

export type NewView = {
  name: string;
  query: string;
  shared?: boolean;
};

export type NewWebhook = {
  changed_at: string;
  created_at: string;
  created_by: string;
  disabled_reason: string | null;
  endpoint_id: string;
  events: string[];
  failures: number;
  filters: Record<string, string[]>;
  kind: "email" | "slack" | "webhook";
  last_failed_at: string | null;
  last_ok_at: string | null;
  looked_at: number;
  name: string;
  paused_until: string | null;
  rate_per_min: number;
  schedule_s: number[];
  secret: string | null;
  state: "active" | "disabled";
  url: string;
  waiting: number;
  waiting_since: string | null;
};

export type NodeAlarm = {
  detector: string | null;
  entropy_score: number | null;
  kind: string;
  session_id: string | null;
  severity: "critical" | "warning";
  since: string | null;
  text: string | null;
};

export type NotDone = {
  letter_id: string;
  reason: string;
};

export type OnAgent = {
  agent_id: string;
  force?: boolean;
  note?: string | null;
};

export type OpenAlert = {
  condition: "breaker" | "budget" | "burn_rate" | "certificate" | "chain" | "checkpoint_lag" | "dead_letters" | "dead_letters_waiting" | "entropy" | "gate_age" | "injection" | "queue_depth" | "security" | "silence" | "silent_agents" | "violations";
  link: string;
  muted: boolean;
  name: string;
  purpose: "alert" | "scaling";
  raised_at: string;
  rule_id: string;
  sequence_number: number;
  severity: "critical" | "error" | "info" | "warning";
  since: string;
  subject: string;
  threshold: string;
  times: number;
  unit: string;
  value: string;
};

export type OpenAlerts = {
  items: OpenAlert[];
  next_cursor: string | null;
};

export type Ordered = {
  note?: string | null;
};

export type OtlpAnswer = {
  cut: number;
  early: number;
  grpc: string | null;
  log_records: number;
  not_agents: number;
  recorded: number;
  refused: number;
  spans: number;
  sums_left: number;
  unmapped: UnmappedName[];
  without_cost: number;
  without_tokens: number;
};

export type OwnWitness = {
  name: string;
  url: string;
  vkey: string | null;
};

export type PageOfAgentItem = {
  items: AgentItem[];
  next_cursor: string | null;
};

export type PageOfAgentSession = {
  items: AgentSession[];
  next_cursor: string | null;
};

export type PageOfAlertItem = {
  items: AlertItem[];
  next_cursor: string | null;
};

export type PageOfAlertNotice = {
  items: AlertNotice[];
  next_cursor: string | null;
};

export type PageOfAuditEvent = {
  items: AuditEvent[];
  next_cursor: string | null;
};

export type PageOfBreakerItem = {
  items: BreakerItem[];
  next_cursor: string | null;
};

export type PageOfBudgetItem = {
  items: BudgetItem[];
  next_cursor: string | null;
};

export type PageOfCapabilityItem = {
  items: CapabilityItem[];
  next_cursor: string | null;
};

export type PageOfDecisionItem = {
  items: DecisionItem[];
  next_cursor: string | null;
};

export type PageOfEdgeItem = {
  items: EdgeItem[];
  next_cursor: string | null;
};

export type PageOfFactItem = {
  items: FactItem[];
  next_cursor: string | null;
};

export type PageOfGrantItem = {
  items: GrantItem[];
  next_cursor: string | null;
};

export type PageOfHoldItem = {
  items: HoldItem[];
  next_cursor: string | null;
};

export type PageOfInstructionsItem = {
  items: InstructionsItem[];
  next_cursor: string | null;
};

export type PageOfInterventionItem = {
  items: InterventionItem[];
  next_cursor: string | null;
};

export type PageOfKeyItem = {
  items: KeyItem[];
  next_cursor: string | null;
};

export type PageOfLoginItem = {
  items: LoginItem[];
  next_cursor: string | null;
};

export type PageOfMemoryItem = {
  items: MemoryItem[];
  next_cursor: string | null;
};

export type PageOfMessageItem = {
  items: MessageItem[];
  next_cursor: string | null;
};

export type PageOfPersonItem = {
  items: PersonItem[];
  next_cursor: string | null;
};

export type PageOfRouteItem = {
  items: RouteItem[];
  next_cursor: string | null;
};

export type PageOfSessionItem = {
  items: SessionItem[];
  next_cursor: string | null;
};

export type PageOfTenantItem = {
  items: TenantItem[];
  next_cursor: string | null;
};

export type PageOfUserItem = {
  items: UserItem[];
  next_cursor: string | null;
};

export type PageOfVersionItem = {
  items: VersionItem[];
  next_cursor: string | null;
};

export type Party = {
  entity_id: string;
  entity_type: "agent" | "system" | "user";
  hub_address?: string | null;
};

export type PathStep = {
  agent_id: string | null;
  at: string;
  onward: string | null;
  sequence_number: number;
  session_id: string | null;
  step: string | null;
};

export type PauseCommand = {
  agent_id: string;
  body: Record<string, string>;
  command: "pause";
  path: string;
  session_id: string;
};

export type PausedAgent = {
  agent_id: string | null;
  holds_it: boolean;
  reason: string;
};

export type PeerAsked = {
  at: string | null;
  detail: string | null;
  state: "ahead" | "cosigned" | "never" | "refused" | "unreachable";
};

export type PeerFork = {
  checkpoint: string;
  kind: "fork" | "inconsistent" | "rollback";
  root: string;
  seen_at: string;
  size: number;
};

export type PeerHead = {
  checkpoint: string;
  root: string;
  seen_at: string;
  size: number;
};

export type PeerItem = {
  asked: PeerAsked;
  cosigned_size: number | null;
  created_at: string;
  created_by: string;
  fork: PeerFork | null;
  head: PeerHead | null;
  log_url: string | null;
  name: string;
  origin: string;
  peer_id: string;
  url: string | null;
  vkey: string;
  witness_vkey: string;
};

export type PeerKeyBody = {
  vkey: string;
};

export type PeerRemoved = {
  peer_id: string;
  removed: boolean;
};

export type PeersAnswer = {
  items: PeerItem[];
  next_cursor: string | null;
  witness: OwnWitness;
};

export type PersonItem = {
  name: string;
  user_id: string;
};

export type PlacedCluster = {
  by: "name" | "operator";
  cluster_id: string;
  lat: number;
  lon: number;
  name: string;
  region: string;
};

export type PolicyItem = {
  created_at: string;
  deadline_s: number | null;
  effect: "allow" | "deny" | "hold";
  enabled: boolean;
  match: Match;
  note: string;
  on_expiry: "approve" | "deny";
  position: number;
  quorum: number;
  rule_id: string;
  updated_at: string;
  updated_by: string;
};

export type PolicyList = {
  default: "allow" | "deny";
  items: PolicyItem[];
  next_cursor: string | null;
};

export type PreviewBody = {
  cron: string;
  zone?: string;
};

export type Previewed = {
  explained: string;
  local: string[];
  next: string[];
};

export type ProblemItem = {
  end: number;
  sentence: string;
  start: number;
};

export type ProofAnswer = {
  audit_event_id: string;
  checkpoint: string;
  hashes: string[];
  index: number;
  leaf: string;
  leaf_hash: string;
  origin: string;
  record: string;
  root: string;
  sequence_number: number;
  size: number;
  tenant_id: string;
  vkey: string;
  vkeys: string[];
};

export type Quarantine = {
  accept_partial?: boolean;
  agents?: string[] | null;
  confirm?: boolean;
  correction: string;
};

export type Quarantined = {
  agents: Record<string, unknown>[];
  fact_id: string;
  status: "already_quarantined" | "planned" | "quarantined";
  truncated?: boolean;
};

export type QuestionItem = {
  filters: FilterItem[];
  meaning: string | null;
  phrases: string[];
  since: string | null;
  until: string | null;
  without: string[];
  words: string[][];
};

export type RecentRun = {
  manual: boolean;
  reason: string | null;
  scheduled_for: string;
  state: "dead" | "due" | "held" | "queued" | "refused" | "sent" | "skipped";
};

export type Reconcile = {
  confirm?: boolean;
  scope: string;
  subject: string;
  value: string;
};

export type ReconcileAnswer = {
  agents: Record<string, unknown>[];
  reconciliation_id: string | null;
  scope: string;
  status: "already_reconciled" | "reconciled";
};

export type Reconciled = {
  decided_at: string;
  decided_by: string;
  value: string;
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

export type RedactionItem = {
  created_at: string;
  created_by: string;
  name: string;
  note: string;
  path: string | null;
  pattern: string | null;
  rule_id: string;
  since_version: number;
  type: "builtin" | "field" | "pattern";
};

export type RedactionList = {
  items: RedactionItem[];
  kinds: Record<string, string>;
  next_cursor: string | null;
  version: number;
};

export type RedactionTrial = {
  message: Record<string, unknown>;
  rule?: NewRedaction | null;
};

export type Refused = {
  cap?: string | null;
  detail?: string | null;
  reason: string;
  rule_id?: string | null;
  status?: "refused";
};

export type RefusedEdge = {
  from: string;
  kind: "cycle";
  to: string;
};

export type RegionItem = {
  lat: number;
  lon: number;
  name: string;
  region: string;
};

export type RegionLatency = {
  count: number;
  histogram: number[];
  lat: number | null;
  lon: number | null;
  max_ms: number | null;
  name: string;
  p50_ms: number | null;
  p95_ms: number | null;
  p99_ms: number | null;
  region: string;
};

export type Regions = {
  clusters: Record<string, unknown>;
  was?: string | null;
};

export type RegionsAnswer = {
  clusters: Record<string, ClusterPlace>;
  known: RegionItem[];
  placed: PlacedCluster[];
  unplaced: string[];
  updated_at: string | null;
  updated_by: string | null;
};

export type Rejected = {
  faults?: Fault[];
  raw_payload_hash?: string | null;
  reason: string;
  status?: "rejected";
};

export type Release = {
  reason: string;
};

export type ReleasedKillSwitch = {
  confirmations_left: number;
  created_at: string;
  engaged_at: string | null;
  expires_at: string | null;
  held: number;
  kill_id: string;
  reason: string;
  released_at: string | null;
  requested_by: string;
  scope: "agent" | "class" | "cluster" | "global";
  state: "armed" | "confirmed" | "engaged" | "lapsed" | "released" | "releasing";
  target: string | null;
  told: number;
};

export type RemovedAnnotation = {
  annotation_id: string;
  removed: boolean;
};

export type RemovedBudget = {
  budget_id: string;
  removed: boolean;
};

export type RemovedJob = {
  job_id: string;
  removed: boolean;
};

export type RemovedPolicy = {
  removed: boolean;
  rule_id: string;
};

export type RemovedRedaction = {
  removed: boolean;
  rule_id: string;
  version: number;
};

export type RemovedView = {
  removed: boolean;
  view_id: string;
};

export type ReplayBody = {
  after?: number | null;
  before?: number | null;
  delivery_id?: string | null;
  since?: string | null;
  until?: string | null;
};

export type Replayed = {
  next_after: number | null;
  replayed: number;
};

export type ResourceUsage = {
  api_calls_24h?: number | null;
  tokens_consumed_24h?: number | null;
};

export type RetentionAnswer = {
  days: number | null;
  thoughts: boolean;
  updated_at: string | null;
  updated_by: string | null;
};

export type RetentionBody = {
  days: number | null;
  thoughts?: boolean;
};

export type Review = {
  note?: string | null;
  verdict: "ok" | "wrong" | "unsure";
};

export type ReviewItem = {
  agent_id: string | null;
  at: string;
  confidence: number | null;
  intent: string | null;
  message_id: string;
  note: string | null;
  reviewed_at: string | null;
  reviewed_by: string | null;
  sequence_number: number;
  session_id: string;
  state: "forwarded" | "held" | "refused" | "rejected";
  status: string | null;
  step_id: string;
  tool: string | null;
  verdict: "ok" | "unsure" | "wrong" | null;
};

export type ReviewList = {
  items: ReviewItem[];
  next_cursor: string | null;
  threshold: number;
};

export type Revoked = {
  key_id: string;
  revoked: boolean;
};

export type RewindBody = {
  to: number;
};

export type Rewriting = {
  agent_id: string;
  new_content: Record<string, unknown>;
  original_message_id: string;
};

export type RoleAnswer = {
  revoked_keys: string[];
  role: string;
  user_id: string;
};

export type RollBack = {
  version: number;
  was?: number | null;
};

export type RoomCommanded = {
  confirmation: string | null;
  detail: string | null;
  intervention_id: string | null;
  released: number | null;
  remaining: number | null;
  session_id: string;
  state: "already_paused" | "not_paused" | "paused" | "refused" | "running";
};

export type RotateBody = {
  overlap_s?: number;
};

export type RouteChange = {
  capability: string;
  was?: Record<string, number> | null;
  weights: Record<string, number>;
};

export type RouteItem = {
  capability: string;
  shares: Record<string, number>;
  updated_at: string;
  updated_by: string;
  weights: Record<string, number>;
};

export type RoutingSettingsAnswer = {
  capabilities?: "granted" | "self";
  updated_at?: string | null;
  updated_by?: string | null;
};

export type RuleBody = {
  deadline_s?: number | null;
  effect: "allow" | "deny" | "hold";
  enabled?: boolean;
  match: Match;
  note?: string;
  on_expiry?: "deny" | "approve";
  quorum?: number;
};

export type RuleItem = {
  amount: number | null;
  compare: "above" | "below";
  condition: "breaker" | "budget" | "burn_rate" | "certificate" | "chain" | "checkpoint_lag" | "dead_letters" | "dead_letters_waiting" | "entropy" | "gate_age" | "injection" | "queue_depth" | "security" | "silence" | "silent_agents" | "violations";
  cooldown_s: number;
  created_at: string;
  created_by: string;
  direction: "down" | "up" | null;
  enabled: boolean;
  endpoint_ids: string[];
  for_s: number;
  muted_until: string | null;
  name: string;
  open: number;
  purpose: "alert" | "scaling";
  rule_id: string;
  scope: "agent" | "budget" | "capability" | "certificate" | "cluster" | "log" | "session" | "tenant";
  severity: "critical" | "error" | "info" | "warning";
  target: string | null;
  threshold: number;
  updated_at: string;
  updated_by: string;
  window_s: number | null;
};

export type RuleList = {
  conditions: ConditionItem[];
  items: RuleItem[];
  mail_is_set: boolean;
  next_cursor: string | null;
};

export type RuleOrder = {
  order: string[];
  was?: string[] | null;
};

export type RuleRemoved = {
  removed: boolean;
  rule_id: string;
};

export type RulesMade = {
  items: RuleItem[];
};

export type RunItem = {
  acknowledged_at: string | null;
  code: number | null;
  created_at: string;
  created_by: string;
  ended_at: string | null;
  job_id: string;
  manual: boolean;
  message_id: string | null;
  next_try_at: string | null;
  reason: string | null;
  run_id: string;
  scheduled_for: string;
  session_id: string | null;
  state: "dead" | "due" | "held" | "queued" | "refused" | "sent" | "skipped";
  tries: number;
};

export type RunPage = {
  items: RunItem[];
  next_cursor: string | null;
};

export type ScalingTriggerBody = {
  amount?: number;
  compare?: "above" | "below";
  condition: "entropy" | "injection" | "violations" | "security" | "budget" | "burn_rate" | "silence" | "silent_agents" | "queue_depth" | "breaker" | "dead_letters" | "dead_letters_waiting" | "gate_age" | "chain" | "checkpoint_lag" | "certificate";
  cooldown_s?: number;
  direction: "up" | "down";
  enabled?: boolean;
  endpoint_ids?: string[];
  for_s?: number;
  name: string;
  scope?: "tenant" | "cluster" | "capability" | "agent" | "session" | "budget" | "log" | "certificate" | null;
  severity?: "info" | "warning" | "error" | "critical" | null;
  target?: string | null;
  threshold?: number | null;
  was?: string | null;
};

export type SchedulerItem = {
  clock: ClockHealth;
  dead_letters: number;
  lag_s: number;
  last_look_at: string | null;
  leader: SchedulerLeader | null;
  next_at: string | null;
};

export type SchedulerLeader = {
  epoch: number;
  expires_at: string;
  holder: string;
  is_live: boolean;
  is_this_gateway: boolean;
  last_tick_at: string;
};

export type SealAnswer = {
  genesis: string;
  last_chain_hash: string;
  root: string;
  sealed_at: string;
  size: number;
};

export type SearchAnswer = {
  as_of: number;
  behind: number;
  capped: boolean;
  facets: Facets | null;
  hits: number;
  items: SearchHit[];
  mode: "hybrid" | "semantic" | "text";
  next_cursor: string | null;
  problems: ProblemItem[];
  query: QuestionItem;
  semantic: "not_asked" | "not_available" | "partial" | "used";
  warnings: string[];
};

export type SearchHit = {
  agent_id: string | null;
  at: string;
  message_id: string;
  message_type: string;
  score: number;
  sequence_number: number;
  session_id: string | null;
  snippet: Snippet | null;
  state: "forwarded" | "held" | "refused" | "rejected";
  status: string | null;
  step_id: string;
  tool: string | null;
  why: Why;
};

export type SessionAgentCost = {
  agent_id: string | null;
  cost: number;
  steps: number;
  tokens: number;
};

export type SessionAnswer = {
  agent_names: string[];
  agents: SessionMember[];
  agents_count: number;
  cap: SessionCap | null;
  confidence: number | null;
  cost: number;
  entropy_score: number | null;
  entropy_trail: number[];
  first_sequence_number: number;
  goal: string | null;
  held: number;
  last_at: string;
  last_sequence_number: number;
  loop_detected_at: string | null;
  messages: number;
  paused: number;
  sealed?: boolean;
  session_id: string;
  severity: "loop" | "normal" | "warning";
  started_at: string;
  status: "ended" | "looping" | "paused" | "running" | "stuck" | "waiting";
  stuck: boolean;
  stuck_reason: "pending" | "silent" | null;
  stuck_since: string | null;
  tokens: number;
  trace_id: string;
};

export type SessionCap = {
  budget_id: string;
  hard: number | null;
  scope: "agent" | "cluster" | "session" | "tenant";
  share: number;
  soft: number | null;
  spent: number;
  target: string;
};

export type SessionCosts = {
  agents: SessionAgentCost[];
  as_of: string;
  branches: BranchItem[];
  branches_count: number;
  cost: number;
  fell: string[];
  hottest: string[];
  reported: number;
  session_id: string;
  steps: number;
  truncated: boolean;
};

export type SessionItem = {
  agent_names: string[];
  agents_count: number;
  cap: SessionCap | null;
  confidence: number | null;
  cost: number;
  entropy_score: number | null;
  entropy_trail: number[];
  first_sequence_number: number;
  goal: string | null;
  held: number;
  last_at: string;
  last_sequence_number: number;
  loop_detected_at: string | null;
  messages: number;
  paused: number;
  sealed?: boolean;
  session_id: string;
  severity: "loop" | "normal" | "warning";
  started_at: string;
  status: "ended" | "looping" | "paused" | "running" | "stuck" | "waiting";
  stuck: boolean;
  stuck_reason: "pending" | "silent" | null;
  stuck_since: string | null;
  trace_id: string;
};

export type SessionMember = {
  agent_id: string;
  cost: number;
  entity_id: string;
  last_step: string | null;
  messages: number;
  paused: boolean;
  tokens: number;
};

export type ShredAnswer = {
  event?: number | null;
  held?: number;
  message_id?: string | null;
  session_id?: string | null;
  shredded: number;
};

export type ShreddedBy = {
  at?: string | null;
  by?: string | null;
  event: number;
  reason?: string | null;
};

export type Shredding = {
  confirm: string;
  reason: string;
};

export type SideEffect = {
  failed: number;
  first: StepPlace;
  other: number;
  pending: number;
  strength: "strong" | "weak";
  succeeded: number;
  tool: string;
};

export type SideItem = {
  holders: Holder[];
  value: string;
};

export type SlackChallenge = {
  challenge: string;
};

export type SmallerContainment = {
  agents: PausedAgent[];
  note: string;
  pause: PauseCommand[];
};

export type Snippet = {
  matches: [number, number][];
  part: string;
  text: string;
};

export type Speaker = {
  agent_id: string | null;
  best: SearchHit | null;
  count: number;
  first_at: string;
  last_at: string;
};

export type SpeakersAnswer = {
  as_of: number;
  behind: number;
  capped: boolean;
  facets: Facets | null;
  hits: number;
  items: Speaker[];
  mode: "hybrid" | "semantic" | "text";
  next_cursor: string | null;
  problems: ProblemItem[];
  query: QuestionItem;
  semantic: "not_asked" | "not_available" | "partial" | "used";
  warnings: string[];
};

export type Spend = {
  strong: number;
  weak: number;
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

export type StatusAlert = {
  actionable?: boolean | null;
  alert_id: string;
  category?: string | null;
  detail?: AlertDetail | null;
  severity: "critical" | "error" | "info" | "warning";
  summary?: string | null;
  title: string;
};

export type StatusAlertEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "status_alert";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: StatusAlert;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type StepAnswer = {
  acknowledged_at?: string | null;
  after_hash?: string | null;
  agent_id: string | null;
  agent_type?: string | null;
  annotations: AnnotationItem[];
  at: string;
  badge?: "Terminal" | "Thinking" | "Tool Executing" | "Waiting";
  before_hash?: string | null;
  branch_cost?: number;
  capability_version: string | null;
  children: Record<string, unknown>[];
  children_count: number;
  command?: string;
  confidence?: number | null;
  confirmed_at?: string | null;
  cost?: number;
  declared_parents: string[];
  depth?: number;
  entropy_score?: number | null;
  flags?: string[];
  gate?: "approved" | "none" | "open" | null;
  gateway_away: boolean;
  held_because?: string | null;
  hitl_required?: boolean;
  hold: Record<string, unknown> | null;
  id: string;
  input: Record<string, unknown>;
  intent?: string | null;
  interventions: DagNode[];
  is_root?: boolean;
  is_terminal?: boolean;
  kind: "intervention" | "step";
  links: Record<string, string>;
  low_confidence?: boolean;
  message_id?: string;
  message_type: string;
  model: string | null;
  operator_id?: string;
  orphan?: boolean;
  output: Record<string, unknown>;
  parent?: string | null;
  proven?: boolean | null;
  provider: string | null;
  reasoning: Record<string, unknown>;
  recipient: string | null;
  reversed_at?: string | null;
  review: Record<string, unknown> | null;
  rewrites: Record<string, unknown>[];
  sealed?: boolean;
  sequence_number: number;
  session_id: string;
  state?: "forwarded" | "held" | "refused" | "rejected";
  status?: string | null;
  step_id?: string;
  tokens?: number | null;
  tool?: string | null;
  trace: Record<string, string | null>;
  version: number;
};

export type StepPlace = {
  agent_id: string | null;
  at: string;
  sequence_number: number;
  session_id: string | null;
  step: string | null;
};

export type StoppedAgent = {
  agent_id: string;
  denied?: number;
  held?: number;
  sent?: number;
};

export type StoppedMessage = {
  agent_id: string;
  effect: "allow" | "deny" | "hold";
  message_id: string;
  message_type: string;
  recipient: string | null;
  rule_id: string;
  sequence_number: number;
  tool: string | null;
};

export type SystemEvent = {
  detail?: Record<string, unknown> | null;
  entity_id: string;
  event_id: string;
  event_type: string;
  reason?: string | null;
};

export type SystemEventEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "system_event";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: SystemEvent;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type TaintedAgent = {
  agent_id: string | null;
  cost: number;
  first: StepPlace;
  sessions: string[];
  steps: number;
  strength: "received" | "strong" | "weak";
};

export type TaintedStep = {
  agent_id: string | null;
  at: string;
  cost: number;
  depth: number;
  evidence: CascadeEdge[];
  sequence_number: number;
  session_id: string | null;
  state: string;
  status: string | null;
  step: string | null;
  strength: "strong" | "weak";
  tool: string | null;
  weight: number;
};

export type TenantItem = {
  created_at: string;
  current: boolean;
  disabled_at: string | null;
  display_name: string;
  may_enter: boolean;
  tenant_id: string;
};

export type TestAnswer = {
  outcomes: TestOutcome[];
  rule_id: string;
  sequence_number: number;
};

export type TestOutcome = {
  code: number | null;
  detail: string;
  endpoint_id: string;
  kind: string | null;
  name: string | null;
  ok: boolean;
};

export type Text = {
  content: string;
  format?: "markdown" | "plain" | null;
  reply_to?: string | null;
};

export type TextEnvelope = {
  envelope_version: string;
  message_id: string;
  message_type: "text";
  metadata?: Record<string, unknown> | null;
  parent_span_id: string | null;
  payload: Text;
  priority?: "critical" | "high" | "low" | "normal" | null;
  recipient: Party;
  sender: Party;
  span_id: string;
  timestamp: string;
  trace_id: string;
};

export type ThoughtItem = {
  audit_event_id: string;
  audit_event_ids: string[];
  author: string;
  chain_hash: string;
  content: Record<string, unknown> | null;
  content_hash: string;
  created_at: string;
  index: number;
  parent_chain_hash: string;
  predecessor_chain_hash: string | null;
  record_id: string;
  references: string[];
  sequence_number: number;
  session_id: string;
  shredded_by: number | null;
  task_id: string;
  type: string;
};

export type ThoughtPage = {
  items: ThoughtItem[];
  next: number | null;
  session: ThoughtSessionItem;
};

export type ThoughtProof = {
  hashes: string[];
  index: number;
  leaf: string;
  root: string;
  size: number;
};

export type ThoughtSeal = {
  root: string;
  sealed_at: string;
  size: number;
};

export type ThoughtSessionItem = {
  caller: string;
  ended_at: string | null;
  genesis: string;
  intent: string;
  intent_shredded_by: number | null;
  last_chain_hash: string;
  open_tasks: number;
  predecessor_chain_hash: string | null;
  predecessor_session_id: string | null;
  proof_grade: boolean;
  records: number;
  root: string | null;
  sealed_at: string | null;
  session_id: string;
  started_at: string;
  task_id: string;
  verified_records: number | null;
};

export type ThoughtSessionList = {
  items: ThoughtSessionItem[];
  next_cursor: string | null;
};

export type Throughput = {
  cost_per_min: number;
  edges: number;
  failures_60s: number;
  messages_60s: number;
  rate_per_s: number;
  violations_60s: number;
};

export type ThroughputAnswer = {
  as_of: string;
  bucket_s: number;
  failures: number;
  folded_until: string | null;
  messages: number;
  points: ThroughputPoint[];
  rate_per_s: number;
  violations: number;
  window: "1h" | "60s";
};

export type ThroughputPoint = {
  at: string;
  failures: number;
  messages: number;
  violations: number;
};

export type TimeBin = {
  count: number;
  from: string;
  to: string;
};

export type Timeline = {
  bin_s: number;
  from: string;
  lanes: TimelineLane[];
  more: boolean;
  most: number;
  now: string;
  until: string;
};

export type TimelineBin = {
  at: string;
  failed: number;
  missed: number;
  planned: number;
  sent: number;
  waiting: number;
};

export type TimelineLane = {
  bins: TimelineBin[];
  job_id: string;
  name: string;
  recent: RecentRun[];
  state: "active" | "done" | "paused";
};

export type TimesAnswer = {
  as_of: number;
  behind: number;
  capped: boolean;
  facets: Facets | null;
  hits: number;
  items: TimeBin[];
  mode: "hybrid" | "semantic" | "text";
  next_cursor: string | null;
  problems: ProblemItem[];
  query: QuestionItem;
  semantic: "not_asked" | "not_available" | "partial" | "used";
  warnings: string[];
};

export type TlsStatus = {
  client_certs: "none" | "optional" | "required";
  configured: boolean;
  problem: string | null;
  proxies: number;
  setup: string;
  warn_days: number;
};

export type TrialAnswer = {
  fits: boolean;
  message: Record<string, unknown>;
  places: TrialPlace[];
  replaced: number;
};

export type TrialPlace = {
  kind: string;
  path: string;
  times: number;
};

export type TriedPolicy = {
  effect: "allow" | "deny" | "hold";
  messages: number;
  rule_id: string;
};

export type TriedRule = {
  deadline_s?: number | null;
  effect: "allow" | "deny" | "hold";
  enabled?: boolean;
  match: Match;
  note?: string;
  on_expiry?: "deny" | "approve";
  quorum?: number;
  rule_id?: string | null;
};

export type TriggerLevel = {
  of: number;
  rule_id: string;
  subjects: LevelItem[];
};

export type TriggerLevels = {
  at: string;
  items: TriggerLevel[];
  next_cursor: null;
};

export type TriggeredBy = {
  decision_id?: string | null;
};

export type UnacknowledgedAgent = {
  agent_id: string;
  is_evicted: boolean;
  last_seen_at: string | null;
};

export type UnmappedName = {
  count: number;
  name: string;
};

export type Upcoming = {
  items: UpcomingItem[];
  next_cursor: null;
};

export type UpcomingItem = {
  job_id: string;
  name: string;
  next_at: string;
  next_for: string;
  target: JobTarget;
};

export type UserItem = {
  created_at: string;
  disabled_at?: string | null;
  display_name: string;
  invite_url?: string | null;
  name: string;
  role: string;
  tenant_id: string;
  user_id: string;
};

export type VerifyAnswer = {
  checks: Record<string, boolean | null>;
  events_verified: number;
  first_break: VerifyBreak | null;
  first_hash: string | null;
  from_sequence: number;
  last_hash: string | null;
  tenant_id: string;
  to_sequence: number;
  valid: boolean;
  verified_at: string;
};

export type VerifyBreak = {
  sentence: string;
  sequence_number: number;
  what: string;
};

export type VerifyRequest = {
  from_sequence?: number;
  tenant_id?: string | null;
  to_sequence?: number | null;
};

export type VersionItem = {
  agent_type: string;
  fields: string[] | null;
  status: "current" | "previous" | "retired" | "unknown";
  updated_at?: string | null;
  updated_by?: string | null;
  version: string;
};

export type VersionRow = {
  fields?: string[] | null;
  status: "current" | "previous" | "retired";
  version: string;
};

export type VersionsOfType = {
  agent_type: string;
  versions: VersionRow[];
  was?: Record<string, "current" | "previous" | "retired"> | null;
};

export type ViewItem = {
  created_at: string;
  mine: boolean;
  name: string;
  owner_id: string;
  query: string;
  shared: boolean;
  view_id: string;
};

export type ViewList = {
  items: ViewItem[];
  next_cursor: string | null;
};

export type ViolationGroup = {
  agent_id: string | null;
  agent_type: string | null;
  capability_version: string | null;
  count: number;
  counts: number[];
  first_at: string;
  last_at: string;
  reason: string;
};

export type ViolationItem = {
  agent_id: string | null;
  agent_type: string | null;
  at: string;
  audit_event_id: string;
  capability_version: string | null;
  count: number;
  raw_payload_hash: string;
  reason: string;
  sequence_number: number;
};

export type ViolationsAnswer = {
  bucket_s: number;
  counts: number[];
  groups: ViolationGroup[];
  groups_count: number;
  newest: ViolationItem[];
  since: string;
  total: number;
  truncated: boolean;
  until: string;
};

export type WaitingAnswer = {
  as_of: string;
  counts: WaitingCounts;
  items: WaitingItem[];
};

export type WaitingCounts = {
  decisions: number;
  gates: number;
  reviews: number;
  reviews_more: boolean;
  total: number;
};

export type WaitingItem = {
  action_digest: string | null;
  agent_id: string | null;
  approvals: string[];
  can: AllowedAction[];
  confidence: number | null;
  deadline: string | null;
  held_at: string;
  id: string;
  key_maker: string | null;
  kind: "decision" | "gate" | "review";
  message_id: string | null;
  message_type: string | null;
  on_expiry: "approve" | "auto" | "deny" | "expire" | null;
  options: DecisionOption[] | null;
  quorum: number;
  recipient: string | null;
  requested_by: string | null;
  rewritten: boolean;
  risk: "critical" | "high" | "low" | "medium" | null;
  sequence_number: number;
  session_id: string;
  title: string | null;
  tool: string | null;
  why: string;
};

export type WebhookBody = {
  events?: string[];
  filters?: Record<string, string[]>;
  kind?: "webhook" | "slack" | "email";
  name: string;
  rate_per_min?: number;
  schedule_s?: number[];
  url: string;
  was?: string | null;
};

export type WebhookItem = {
  changed_at: string;
  created_at: string;
  created_by: string;
  disabled_reason: string | null;
  endpoint_id: string;
  events: string[];
  failures: number;
  filters: Record<string, string[]>;
  kind: "email" | "slack" | "webhook";
  last_failed_at: string | null;
  last_ok_at: string | null;
  looked_at: number;
  name: string;
  paused_until: string | null;
  rate_per_min: number;
  schedule_s: number[];
  state: "active" | "disabled";
  url: string;
  waiting: number;
  waiting_since: string | null;
};

export type WebhookList = {
  event_types: string[];
  items: WebhookItem[];
  next_cursor: string | null;
};

export type WebhookRemoved = {
  endpoint_id: string;
  removed: boolean;
};

export type WebhookSecret = {
  endpoint_id: string;
  old_ends_at: string;
  secret: string;
};

export type Whoami = {
  agent_id: string | null;
  display_name: string | null;
  permissions: string[];
  role: string;
  tenant_id: string;
  tenant_name: string;
  user_id: string | null;
  user_name: string | null;
};

export type Why = {
  likeness: number | null;
  semantic_rank: number | null;
  text_rank: number | null;
  words: string[];
};

export type WitnessedCheckpoint = {
  checkpoint: string;
  size: number;
  witnesses: LogWitness[];
};

export type WouldHold = {
  agent_ids: string[];
  agents: number;
  known: boolean;
  sessions: number;
};

export interface Answers {
  "GET /healthz": Health;
  "GET /metrics": unknown;
  "GET /readyz": Health;
  "GET /v1/agents": PageOfAgentItem;
  "POST /v1/agents": AgentItem;
  "GET /v1/agents/{agent_id}": AgentItem;
  "DELETE /v1/agents/{agent_id}/certificate": AgentCertificate;
  "GET /v1/agents/{agent_id}/certificate": AgentCertificate;
  "PUT /v1/agents/{agent_id}/certificate": AgentCertificate;
  "POST /v1/agents/{agent_id}/evict": Evicted;
  "POST /v1/agents/{agent_id}/grants": GrantsAnswer;
  "GET /v1/agents/{agent_id}/inbox": InboxAnswer;
  "POST /v1/agents/{agent_id}/inbox/ack": AckResult;
  "POST /v1/agents/{agent_id}/pause": AgentCommanded;
  "GET /v1/agents/{agent_id}/sessions": PageOfAgentSession;
  "POST /v1/agents/{agent_id}/unpause": AgentCommanded;
  "GET /v1/alert-rules": RuleList;
  "POST /v1/alert-rules": RuleItem;
  "POST /v1/alert-rules/defaults": RulesMade;
  "DELETE /v1/alert-rules/{rule_id}": RuleRemoved;
  "GET /v1/alert-rules/{rule_id}": RuleItem;
  "PUT /v1/alert-rules/{rule_id}": RuleItem;
  "POST /v1/alert-rules/{rule_id}/mute": RuleItem;
  "POST /v1/alert-rules/{rule_id}/test": TestAnswer;
  "GET /v1/alerts": PageOfAlertNotice;
  "GET /v1/alerts/open": OpenAlerts;
  "GET /v1/annotations": AnnotationList;
  "GET /v1/annotations/categories": CategoryList;
  "DELETE /v1/annotations/{annotation_id}": RemovedAnnotation;
  "GET /v1/audit/acts": PageOfAuditEvent;
  "GET /v1/audit/checkpoints": CheckpointList;
  "GET /v1/audit/consistency": ConsistencyAnswer;
  "GET /v1/audit/entity/{entity_id}": PageOfAuditEvent;
  "GET /v1/audit/export": unknown;
  "GET /v1/audit/export/plan": ExportPlan;
  "GET /v1/audit/log": LogAnswer;
  "POST /v1/audit/log/rotate": LogAnswer;
  "GET /v1/audit/proof/{audit_event_id}": ProofAnswer;
  "GET /v1/audit/records": unknown;
  "GET /v1/audit/tenant": PageOfAuditEvent;
  "GET /v1/audit/trace/{trace_id}": PageOfAuditEvent;
  "POST /v1/audit/verify": VerifyAnswer;
  "GET /v1/breakers": PageOfBreakerItem;
  "POST /v1/breakers/{capability}": BreakerItem;
  "GET /v1/budgets": PageOfBudgetItem;
  "PUT /v1/budgets": BudgetItem;
  "DELETE /v1/budgets/{budget_id}": RemovedBudget;
  "GET /v1/capabilities": PageOfCapabilityItem;
  "GET /v1/certificates": CertificatesAnswer;
  "GET /v1/compare": CompareAnswer;
  "GET /v1/costs": CostsAnswer;
  "GET /v1/costs/branches": LinesAnswer;
  "GET /v1/costs/burn": BurnAnswer;
  "GET /v1/costs/gaps": GapList;
  "GET /v1/costs/heatmap": HeatmapAnswer;
  "GET /v1/dead-letters": DeadLetterPage;
  "POST /v1/dead-letters/discard": LettersDone;
  "POST /v1/dead-letters/retry": LettersDone;
  "GET /v1/dead-letters/{letter_id}": DeadLetterItem;
  "POST /v1/dead-letters/{letter_id}/discard": DeadLetterItem;
  "POST /v1/dead-letters/{letter_id}/retry": DeadLetterItem;
  "GET /v1/decisions": PageOfDecisionItem;
  "GET /v1/decisions/pending": PageOfDecisionItem;
  "GET /v1/decisions/{decision_id}": DecisionItem;
  "POST /v1/decisions/{decision_id}/cancel": DecisionItem;
  "POST /v1/decisions/{decision_id}/respond": DecisionItem;
  "GET /v1/drift": DriftAnswer;
  "POST /v1/drift/reconcile": ReconcileAnswer;
  "GET /v1/edges": PageOfEdgeItem;
  "GET /v1/entropy/alerts": PageOfAlertItem;
  "GET /v1/exporters": ExportersAnswer;
  "POST /v1/exporters": ExporterItem;
  "DELETE /v1/exporters/{exporter_id}": ExporterRemoved;
  "GET /v1/exporters/{exporter_id}": ExporterItem;
  "PATCH /v1/exporters/{exporter_id}": ExporterItem;
  "POST /v1/exporters/{exporter_id}/pause": ExporterItem;
  "POST /v1/exporters/{exporter_id}/resume": ExporterItem;
  "POST /v1/exporters/{exporter_id}/rewind": ExporterItem;
  "POST /v1/exporters/{exporter_id}/test": ExporterTested;
  "GET /v1/facts": PageOfFactItem;
  "GET /v1/facts/{fact_id}": FactItem;
  "DELETE /v1/facts/{fact_id}/false": Marked;
  "POST /v1/facts/{fact_id}/false": Marked;
  "GET /v1/facts/{fact_id}/infection": InfectionAnswer;
  "POST /v1/facts/{fact_id}/quarantine": Quarantined;
  "GET /v1/fleet": FleetAnswer;
  "GET /v1/fleet/health": FleetHealth;
  "GET /v1/fleet/latency": LatencyAnswer;
  "GET /v1/fleet/regions": RegionsAnswer;
  "PUT /v1/fleet/regions": RegionsAnswer;
  "GET /v1/fleet/throughput": ThroughputAnswer;
  "GET /v1/grants": PageOfGrantItem;
  "POST /v1/heartbeat": HeartbeatAnswer;
  "GET /v1/holds": PageOfHoldItem;
  "GET /v1/insight/status": InsightStatus;
  "GET /v1/instructions": PageOfInstructionsItem;
  "GET /v1/instructions/{agent_type}": InstructionsAnswer;
  "PUT /v1/instructions/{agent_type}": InstructionsIssued;
  "POST /v1/instructions/{agent_type}/rollback": InstructionsIssued;
  "GET /v1/interventions/{intervention_id}/content": unknown;
  "POST /v1/interventions/{intervention_id}/undo": Commanded;
  "GET /v1/jobs": JobPage;
  "POST /v1/jobs": JobItem;
  "POST /v1/jobs/preview": Previewed;
  "GET /v1/jobs/timeline": Timeline;
  "GET /v1/jobs/upcoming": Upcoming;
  "DELETE /v1/jobs/{job_id}": RemovedJob;
  "GET /v1/jobs/{job_id}": JobItem;
  "PUT /v1/jobs/{job_id}": JobItem;
  "POST /v1/jobs/{job_id}/pause": JobItem;
  "POST /v1/jobs/{job_id}/resume": JobItem;
  "POST /v1/jobs/{job_id}/run": RunItem;
  "GET /v1/jobs/{job_id}/runs": RunPage;
  "GET /v1/keys": PageOfKeyItem;
  "POST /v1/keys": KeyItem;
  "DELETE /v1/keys/{key_id}": Revoked;
  "GET /v1/kill-switch": KillSwitchList;
  "POST /v1/kill-switch": ArmedKillSwitch;
  "GET /v1/kill-switch/{kill_id}": KillSwitchStatus;
  "POST /v1/kill-switch/{kill_id}/confirm": ConfirmedKillSwitch;
  "POST /v1/kill-switch/{kill_id}/release": ReleasedKillSwitch;
  "GET /v1/log/{tenant_id}/checkpoint": unknown;
  "GET /v1/log/{tenant_id}/tile/{level}/{tile}": unknown;
  "GET /v1/logins": PageOfLoginItem;
  "POST /v1/logins": LoginAnswer;
  "DELETE /v1/logins/{login_id}": EndedLogin;
  "POST /v1/logs": Record<string, unknown>;
  "GET /v1/memory": PageOfMemoryItem;
  "GET /v1/messages": PageOfMessageItem;
  "POST /v1/messages": unknown;
  "POST /v1/messages/shred": ShredAnswer;
  "GET /v1/messages/{message_id}": MessageItem;
  "GET /v1/otlp": OtlpAnswer;
  "GET /v1/peers": PeersAnswer;
  "POST /v1/peers": PeerItem;
  "DELETE /v1/peers/{peer_id}": PeerRemoved;
  "POST /v1/peers/{peer_id}/key": PeerItem;
  "POST /v1/peers/{peer_id}/offer": PeerItem;
  "GET /v1/people": PageOfPersonItem;
  "GET /v1/policies": PolicyList;
  "POST /v1/policies": PolicyItem;
  "POST /v1/policies/dry-run": DryRunAnswer;
  "PUT /v1/policies/order": PolicyList;
  "DELETE /v1/policies/{rule_id}": RemovedPolicy;
  "PUT /v1/policies/{rule_id}": PolicyItem;
  "GET /v1/redaction": RedactionList;
  "POST /v1/redaction": RedactionItem;
  "POST /v1/redaction/dry-run": TrialAnswer;
  "DELETE /v1/redaction/{rule_id}": RemovedRedaction;
  "GET /v1/retention": RetentionAnswer;
  "PUT /v1/retention": RetentionAnswer;
  "GET /v1/reviews": ReviewList;
  "POST /v1/reviews/{sequence_number}": ReviewItem;
  "GET /v1/routes": PageOfRouteItem;
  "PUT /v1/routes": RouteItem;
  "GET /v1/scaling-triggers": RuleList;
  "POST /v1/scaling-triggers": RuleItem;
  "GET /v1/scaling-triggers/levels": TriggerLevels;
  "DELETE /v1/scaling-triggers/{rule_id}": RuleRemoved;
  "GET /v1/scaling-triggers/{rule_id}": RuleItem;
  "PUT /v1/scaling-triggers/{rule_id}": RuleItem;
  "POST /v1/scaling-triggers/{rule_id}/mute": RuleItem;
  "POST /v1/scaling-triggers/{rule_id}/test": TestAnswer;
  "GET /v1/scheduler": SchedulerItem;
  "POST /v1/scheduler/from-now": FromNowAnswer;
  "POST /v1/scheduler/resign": SchedulerItem;
  "GET /v1/search": SearchAnswer | SpeakersAnswer | TimesAnswer;
  "GET /v1/sessions": PageOfSessionItem;
  "GET /v1/sessions/stuck": PageOfSessionItem;
  "GET /v1/sessions/{session_id}": SessionAnswer;
  "GET /v1/sessions/{session_id}/annotations": AnnotationList;
  "POST /v1/sessions/{session_id}/approve": Commanded;
  "POST /v1/sessions/{session_id}/cancel": Commanded;
  "GET /v1/sessions/{session_id}/costs": SessionCosts;
  "GET /v1/sessions/{session_id}/dag": DagAnswer;
  "POST /v1/sessions/{session_id}/edit": Commanded;
  "GET /v1/sessions/{session_id}/evidence": unknown;
  "POST /v1/sessions/{session_id}/inject": Commanded;
  "GET /v1/sessions/{session_id}/interventions": PageOfInterventionItem;
  "POST /v1/sessions/{session_id}/leave": LeaveAnswer;
  "POST /v1/sessions/{session_id}/pause": Commanded;
  "POST /v1/sessions/{session_id}/reject": Commanded;
  "POST /v1/sessions/{session_id}/rewrite": Commanded;
  "GET /v1/sessions/{session_id}/seal": SealAnswer;
  "POST /v1/sessions/{session_id}/seal": ThoughtSeal;
  "POST /v1/sessions/{session_id}/shred": ShredAnswer;
  "GET /v1/sessions/{session_id}/steps/{step}": StepAnswer;
  "POST /v1/sessions/{session_id}/steps/{step}/annotations": AnnotationItem;
  "GET /v1/sessions/{session_id}/thoughts": ThoughtPage;
  "POST /v1/sessions/{session_id}/thoughts": RecordedThought;
  "POST /v1/sessions/{session_id}/thoughts/end": EndedSession;
  "POST /v1/sessions/{session_id}/thoughts/shred": ShredAnswer;
  "POST /v1/sessions/{session_id}/thoughts/verify": ChainVerdict;
  "GET /v1/sessions/{session_id}/thoughts/{record_id}/proof": ThoughtProof;
  "POST /v1/sessions/{session_id}/unpause": Commanded;
  "GET /v1/settings/decisions": DecisionSettingsAnswer;
  "PUT /v1/settings/decisions": DecisionSettingsAnswer;
  "GET /v1/settings/detectors": DetectorAnswer;
  "PUT /v1/settings/detectors": DetectorAnswer;
  "GET /v1/settings/routing": RoutingSettingsAnswer;
  "PUT /v1/settings/routing": RoutingSettingsAnswer;
  "GET /v1/steps/{step}/blast": BlastAnswer;
  "GET /v1/steps/{step}/causes": CausesAnswer;
  "GET /v1/tenants": PageOfTenantItem;
  "POST /v1/tenants": NewTenantAnswer;
  "GET /v1/thought-sessions": ThoughtSessionList;
  "POST /v1/thought-sessions": StartedSession;
  "POST /v1/thoughts": RecordedThought;
  "POST /v1/traces": Record<string, unknown>;
  "GET /v1/users": PageOfUserItem;
  "POST /v1/users": UserItem;
  "PUT /v1/users/{user_id}": RoleAnswer;
  "POST /v1/users/{user_id}/disable": Disabled;
  "GET /v1/versions": PageOfVersionItem;
  "PUT /v1/versions": PageOfVersionItem;
  "GET /v1/views": ViewList;
  "POST /v1/views": ViewItem;
  "DELETE /v1/views/{view_id}": RemovedView;
  "GET /v1/violations": ViolationsAnswer;
  "GET /v1/waiting": WaitingAnswer;
  "GET /v1/webhooks/in": HookList;
  "POST /v1/webhooks/in": HookSecret;
  "GET /v1/webhooks/in/calls": HookCallList;
  "GET /v1/webhooks/in/calls/{call_id}": HookCallWhole;
  "POST /v1/webhooks/in/test": HookTried;
  "DELETE /v1/webhooks/in/{hook_id}": HookRemoved;
  "GET /v1/webhooks/in/{hook_id}": HookItem;
  "PATCH /v1/webhooks/in/{hook_id}": HookItem;
  "POST /v1/webhooks/in/{hook_id}/rotate": HookSecret;
  "GET /v1/webhooks/out": WebhookList;
  "POST /v1/webhooks/out": NewWebhook;
  "GET /v1/webhooks/out/deliveries": LoggedDeliveryList;
  "DELETE /v1/webhooks/out/{endpoint_id}": WebhookRemoved;
  "GET /v1/webhooks/out/{endpoint_id}": WebhookItem;
  "PUT /v1/webhooks/out/{endpoint_id}": WebhookItem;
  "GET /v1/webhooks/out/{endpoint_id}/deliveries": DeliveryList;
  "GET /v1/webhooks/out/{endpoint_id}/deliveries/{delivery_id}": DeliveryDetail;
  "POST /v1/webhooks/out/{endpoint_id}/disable": WebhookItem;
  "POST /v1/webhooks/out/{endpoint_id}/enable": WebhookItem;
  "POST /v1/webhooks/out/{endpoint_id}/replay": Replayed;
  "POST /v1/webhooks/out/{endpoint_id}/rotate": WebhookSecret;
  "POST /v1/webhooks/out/{endpoint_id}/test": DeliveryDetail;
  "POST /v1/webhooks/{hook_id}": CallReceipt | SlackChallenge;
  "GET /v1/whoami": Whoami;
  "POST /v1/witness/{tenant_id}/add-checkpoint": unknown;
  "POST /v1/witness/{tenant_id}/follow-key": unknown;
  "GET /v1/witness/{tenant_id}/{origin_hash}/checkpoint": unknown;
}

export interface Bodies {
  "POST /v1/agents": NewAgent;
  "PUT /v1/agents/{agent_id}/certificate": BindingBody;
  "POST /v1/agents/{agent_id}/evict": Dismissal;
  "POST /v1/agents/{agent_id}/grants": GrantChange;
  "POST /v1/agents/{agent_id}/inbox/ack": AckIds;
  "POST /v1/agents/{agent_id}/pause": Ordered;
  "POST /v1/agents/{agent_id}/unpause": Ordered;
  "POST /v1/alert-rules": AlertRuleBody;
  "POST /v1/alert-rules/defaults": DefaultsBody;
  "PUT /v1/alert-rules/{rule_id}": AlertRuleBody;
  "POST /v1/alert-rules/{rule_id}/mute": MuteBody;
  "POST /v1/audit/verify": VerifyRequest;
  "POST /v1/breakers/{capability}": Circuit;
  "PUT /v1/budgets": BudgetBody;
  "POST /v1/dead-letters/discard": LettersBody;
  "POST /v1/dead-letters/retry": LettersBody;
  "POST /v1/decisions/{decision_id}/respond": DecisionResponseBody;
  "POST /v1/drift/reconcile": Reconcile;
  "POST /v1/exporters": NewExporterBody;
  "PATCH /v1/exporters/{exporter_id}": ExporterChangeBody;
  "POST /v1/exporters/{exporter_id}/rewind": RewindBody;
  "POST /v1/facts/{fact_id}/false": FalseMark;
  "POST /v1/facts/{fact_id}/quarantine": Quarantine;
  "PUT /v1/fleet/regions": Regions;
  "POST /v1/heartbeat": HeartbeatBody;
  "PUT /v1/instructions/{agent_type}": NewInstructions;
  "POST /v1/instructions/{agent_type}/rollback": RollBack;
  "POST /v1/jobs": JobBody;
  "POST /v1/jobs/preview": PreviewBody;
  "PUT /v1/jobs/{job_id}": ChangeJobBody;
  "POST /v1/keys": NewKey;
  "POST /v1/kill-switch": NewKillSwitch;
  "POST /v1/kill-switch/{kill_id}/confirm": Confirmation;
  "POST /v1/kill-switch/{kill_id}/release": Release;
  "POST /v1/logins": NewLogin;
  "POST /v1/logs": Record<string, unknown>;
  "POST /v1/messages": DecisionLog | DecisionRequestEnvelope | DecisionResponseEnvelope | StatusAlertEnvelope | ArtifactShareEnvelope | ActionConfirmationEnvelope | HeartbeatEnvelope | TextEnvelope | SystemEventEnvelope;
  "POST /v1/messages/shred": MessageShredding;
  "POST /v1/peers": NewPeerBody;
  "POST /v1/peers/{peer_id}/key": PeerKeyBody;
  "POST /v1/policies": NewRule;
  "POST /v1/policies/dry-run": DryRun;
  "PUT /v1/policies/order": RuleOrder;
  "PUT /v1/policies/{rule_id}": ChangedRule;
  "POST /v1/redaction": NewRedaction;
  "POST /v1/redaction/dry-run": RedactionTrial;
  "PUT /v1/retention": RetentionBody;
  "POST /v1/reviews/{sequence_number}": Review;
  "PUT /v1/routes": RouteChange;
  "POST /v1/scaling-triggers": ScalingTriggerBody;
  "PUT /v1/scaling-triggers/{rule_id}": ScalingTriggerBody;
  "POST /v1/scaling-triggers/{rule_id}/mute": MuteBody;
  "POST /v1/sessions/{session_id}/approve": AtGate;
  "POST /v1/sessions/{session_id}/cancel": OnAgent;
  "POST /v1/sessions/{session_id}/edit": Editing;
  "POST /v1/sessions/{session_id}/inject": Injection;
  "POST /v1/sessions/{session_id}/leave": Leaving;
  "POST /v1/sessions/{session_id}/pause": OnAgent;
  "POST /v1/sessions/{session_id}/reject": AtGate;
  "POST /v1/sessions/{session_id}/rewrite": Rewriting;
  "POST /v1/sessions/{session_id}/shred": Shredding;
  "POST /v1/sessions/{session_id}/steps/{step}/annotations": NewAnnotation;
  "POST /v1/sessions/{session_id}/thoughts": NewSessionThought;
  "POST /v1/sessions/{session_id}/thoughts/shred": Shredding;
  "POST /v1/sessions/{session_id}/unpause": OnAgent;
  "PUT /v1/settings/decisions": Record<string, unknown>;
  "PUT /v1/settings/detectors": Record<string, unknown>;
  "PUT /v1/settings/routing": Record<string, unknown>;
  "POST /v1/tenants": NewTenant;
  "POST /v1/thought-sessions": NewThoughtSession;
  "POST /v1/thoughts": NewThought;
  "POST /v1/traces": Record<string, unknown>;
  "POST /v1/users": NewUser;
  "PUT /v1/users/{user_id}": NewRole;
  "PUT /v1/versions": VersionsOfType;
  "POST /v1/views": NewView;
  "POST /v1/webhooks/in": NewHookBody;
  "POST /v1/webhooks/in/test": HookTrial;
  "PATCH /v1/webhooks/in/{hook_id}": HookChange;
  "POST /v1/webhooks/in/{hook_id}/rotate": HookRotation;
  "POST /v1/webhooks/out": WebhookBody;
  "PUT /v1/webhooks/out/{endpoint_id}": WebhookBody;
  "POST /v1/webhooks/out/{endpoint_id}/replay": ReplayBody;
  "POST /v1/webhooks/out/{endpoint_id}/rotate": RotateBody;
  "POST /v1/webhooks/{hook_id}": unknown;
}

export interface Queries {
  "GET /v1/agents": { capability?: string | null; cluster?: string | null; liveness?: "healthy" | "zombie" | "evicted" | "unknown" | null; cursor?: string | null; limit?: number };
  "GET /v1/agents/{agent_id}/inbox": { wait?: number; limit?: number };
  "GET /v1/agents/{agent_id}/sessions": { active?: boolean; cursor?: string | null; limit?: number };
  "GET /v1/alerts": { kind?: "entropy" | "loop" | "injection" | "violation" | "budget_warning" | "budget_exceeded" | "eviction" | "kill_switch" | "rule" | "status_alert" | null; cursor?: string | null; limit?: number };
  "GET /v1/alerts/open": { cursor?: string | null; limit?: number };
  "GET /v1/annotations": { category?: string | null; label?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/audit/acts": { about?: "kill_switch" | "instructions" | "access" | "budgets" | null; cursor?: string | null; limit?: number };
  "GET /v1/audit/checkpoints": { over?: number | null; cursor?: string | null; limit?: number };
  "GET /v1/audit/consistency": { from?: number; to?: number | null };
  "GET /v1/audit/entity/{entity_id}": { cursor?: string | null; limit?: number };
  "GET /v1/audit/export": { from?: number | null; to?: number | null; since?: string | null; until?: string | null; payloads?: boolean };
  "GET /v1/audit/export/plan": { from?: number | null; to?: number | null; since?: string | null; until?: string | null; payloads?: boolean };
  "GET /v1/audit/proof/{audit_event_id}": { format?: "json" | "tlog-proof" | null; witnessed?: boolean };
  "GET /v1/audit/records": { after?: number; limit?: number };
  "GET /v1/audit/tenant": { since?: string | null; until?: string | null; severity_min?: number | null; after?: number | null; entity_id?: string | null; trace_id?: string | null; event_type?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/audit/trace/{trace_id}": { cursor?: string | null; limit?: number };
  "GET /v1/compare": { left?: string | null; right?: string | null };
  "GET /v1/costs": { by?: "agent" | "session" | "cluster" | "type" | "tool" | "model"; since?: string | null; until?: string | null; agent?: string | null; session?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/costs/branches": { since?: string | null; until?: string | null; session?: string | null; limit?: number };
  "GET /v1/costs/gaps": { session?: string | null; agent?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/costs/heatmap": { by?: "cluster" | "agent" | "session"; bucket?: "minute" | "hour"; since?: string | null; limit?: number };
  "GET /v1/dead-letters": { kind?: string | null; state?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/decisions": { state?: "pending" | "answered" | "expired" | "cancelled" | "executing" | "succeeded" | "failed" | null; cursor?: string | null; limit?: number };
  "GET /v1/decisions/pending": { user_id?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/drift": { session?: string | null; cluster?: string | null; hours?: number };
  "GET /v1/entropy/alerts": { cursor?: string | null; limit?: number };
  "GET /v1/facts": { text?: string | null; q?: string | null; agent?: string | null; session?: string | null; marked?: boolean; cursor?: string | null; limit?: number };
  "GET /v1/facts/{fact_id}/infection": { cursor?: string | null; limit?: number };
  "POST /v1/facts/{fact_id}/quarantine": { dry_run?: boolean };
  "GET /v1/fleet": { layout?: "logical" | "geographic"; level?: "cluster" | "group" | "agent"; cluster?: string | null; group?: string | null; at?: string | null; limit?: number };
  "GET /v1/fleet/latency": { minutes?: number };
  "GET /v1/fleet/throughput": { window?: "60s" | "1h" };
  "GET /v1/holds": { session_id?: string | null; agent_id?: string | null; gates_only?: boolean; cursor?: string | null; limit?: number };
  "GET /v1/jobs": { state?: string | null; reminders?: boolean | null; cursor?: string | null; limit?: number };
  "GET /v1/jobs/timeline": { hours?: number; bins?: number };
  "GET /v1/jobs/upcoming": { hours?: number; limit?: number };
  "GET /v1/jobs/{job_id}/runs": { cursor?: string | null; limit?: number };
  "GET /v1/logins": { user_id?: string | null };
  "GET /v1/memory": { agent?: string | null; session?: string | null; at?: string | null; step?: string | null; seq?: number | null; cursor?: string | null; limit?: number };
  "GET /v1/messages": { session_id?: string | null; agent_id?: string | null; message_type?: string | null; state?: string | null; after?: number | null; cursor?: string | null; limit?: number };
  "GET /v1/messages/{message_id}": { raw?: boolean };
  "DELETE /v1/policies/{rule_id}": { confirm?: boolean };
  "GET /v1/reviews": { state?: "open" | "done"; cursor?: string | null; limit?: number };
  "GET /v1/search": { q?: string; mode?: "text" | "semantic" | "hybrid"; group?: "agent" | "time" | null; cursor?: string | null; limit?: number };
  "GET /v1/sessions": { q?: string | null; status?: "ended" | "paused" | "looping" | "waiting" | "stuck" | "running" | null; severity?: "warning" | "loop" | null; stuck?: boolean; cursor?: string | null; limit?: number };
  "GET /v1/sessions/stuck": { cursor?: string | null; limit?: number };
  "GET /v1/sessions/{session_id}/annotations": { cursor?: string | null; limit?: number };
  "GET /v1/sessions/{session_id}/costs": { limit?: number };
  "GET /v1/sessions/{session_id}/dag": { after?: number | null; since?: string | null };
  "GET /v1/sessions/{session_id}/thoughts": { start?: number; limit?: number };
  "GET /v1/steps/{step}/blast": { session?: string | null; minutes?: number; cursor?: string | null; limit?: number };
  "GET /v1/steps/{step}/causes": { session?: string | null };
  "GET /v1/thought-sessions": { cursor?: string | null; limit?: number };
  "GET /v1/versions": { agent_type?: string | null };
  "GET /v1/views": { cursor?: string | null; limit?: number };
  "GET /v1/violations": { since?: string | null; until?: string | null; agent?: string | null; version?: string | null; reason?: string | null; limit?: number };
  "GET /v1/waiting": { kind?: "gate" | "decision" | "review" | null; limit?: number };
  "GET /v1/webhooks/in/calls": { hook_id?: string | null; signature?: "valid" | "invalid" | "missing" | null; outcome?: "taken" | "forwarded" | "held" | "refused" | "ignored" | "answered" | "unmapped" | "not_taken" | "turned_away" | null; cursor?: string | null; limit?: number };
  "GET /v1/webhooks/out/deliveries": { endpoint_id?: string | null; state?: "waiting" | "delivered" | "dead" | null; event_type?: string | null; cursor?: string | null; limit?: number };
  "GET /v1/webhooks/out/{endpoint_id}/deliveries": { state?: "waiting" | "delivered" | "dead" | null; cursor?: string | null; limit?: number };
}
