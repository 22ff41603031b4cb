"""Which role may ask for what: one line for every operation, compared with the OpenAPI document.

The roles are those of the brief: viewer and auditor read, an approver answers, an operator commands, an
admin does everything of its tenant, an agent sends and has its own inbox.
"""

from __future__ import annotations

from typing import Any

PEOPLE = ("viewer", "auditor", "approver", "operator", "admin")
ROLES = (*PEOPLE, "agent")
READERS = set(PEOPLE)
APPROVERS, OPERATORS = {"approver", "operator", "admin"}, {"operator", "admin"}
ON_AGENT = {"agent_id": "matrix"}
RULE = {"effect": "deny", "match": {"sender": ["matrix"]}}
# S58 by operation; a body is sent where one is needed, ids name nothing and hold up nobody.
MATRIX: dict[str, tuple[set[str], Any]] = {
    "healthz": ({*ROLES, "nobody"}, None),
    "readyz": ({*ROLES, "nobody"}, None),
    "metrics": (READERS, None),
    "whoami": (set(ROLES), None),
    "list_messages": (READERS, None),
    "get_message": (READERS, None),
    "audit_trace": (READERS, None),
    "audit_tenant": (READERS, None),
    "audit_entity": (READERS, None),
    "audit_verify": ({"auditor", "operator", "admin"}, {}),
    "list_agents": (READERS, None),
    "get_agent": (READERS, None),
    "list_sessions": (READERS, None),
    "get_session": (READERS, None),
    "list_versions": (READERS, None),
    "put_versions": (
        OPERATORS,
        {"agent_type": "matrix", "versions": [{"version": "1.0.0", "status": "current"}]},
    ),
    "list_tenants": ({"admin"}, None),
    "create_tenant": ({"admin"}, {"display_name": "Matrix"}),
    "list_users": ({"admin"}, None),
    "create_user": ({"admin"}, {"name": "matrix", "role": "viewer"}),
    "disable_user": ({"admin"}, None),
    "list_keys": ({"admin"}, None),
    "create_key": ({"admin"}, {"role": "agent"}),
    "revoke_key": ({"admin"}, None),
    "change_role": ({"admin"}, {"role": "viewer"}),
    "register_agent": ({*OPERATORS, "agent"}, ON_AGENT),
    "heartbeat": ({*OPERATORS, "agent"}, ON_AGENT),
    "leave_session": ({*OPERATORS, "agent"}, ON_AGENT),
    "evict_agent": (set(OPERATORS), {}),
    "read_inbox": ({"admin", "agent"}, None),
    "ack_inbox": ({"admin", "agent"}, {"ids": ["dlv_1-1"]}),
    "list_capabilities": (READERS, None),
    "list_edges": (READERS, None),
    "list_routes": (READERS, None),
    "put_route": (OPERATORS, {"capability": "matrix", "weights": {"cluster:matrix": 1}}),
    "list_breakers": (READERS, None),
    "set_breaker": (OPERATORS, {"state": "closed"}),
    "list_holds": (READERS, None),
    "list_interventions": (READERS, None),
    "get_rewrite": (READERS, None),
    "pause": (OPERATORS, ON_AGENT),
    "unpause": (OPERATORS, ON_AGENT),
    "inject": (OPERATORS, ON_AGENT | {"prompt": "matrix"}),
    "rewrite": (OPERATORS, ON_AGENT | {"original_message_id": "none", "new_content": {}}),
    "cancel": (OPERATORS, ON_AGENT),
    "undo": (OPERATORS, None),
    "approve": (APPROVERS, ON_AGENT),
    "edit": (APPROVERS, ON_AGENT | {"new_content": {}}),
    "reject": (APPROVERS, ON_AGENT),
    "pending_decisions": (READERS, None),
    "list_decisions": (READERS, None),
    "get_decision": (READERS, None),
    "respond_decision": (APPROVERS, {"selected_option_id": "a"}),
    "cancel_decision": (OPERATORS, None),
    "list_policies": (READERS, None),
    "create_policy": (OPERATORS, RULE),
    "order_policies": (OPERATORS, {"order": ["none"]}),
    "replace_policy": (OPERATORS, RULE),
    "remove_policy": (OPERATORS, None),
    "try_policies": (OPERATORS, {"rule": RULE, "minutes": 1}),
    "list_budgets": (READERS, None),
    "put_budget": (OPERATORS, {"scope": "agent", "target": "matrix", "hard": 1}),
    "remove_budget": (OPERATORS, None),
    "list_kill_switches": (READERS, None),
    "arm_kill_switch": ({"admin"}, {"scope": "class", "target": "matrix", "reason": "matrix"}),
    "confirm_kill_switch": ({"admin"}, {"token": "none"}),
    "release_kill_switch": ({"admin"}, {"reason": "matrix"}),
    "list_instructions": (READERS, None),
    "get_instructions": (READERS, None),
    "put_instructions": ({"admin"}, {"text": "matrix"}),
    "roll_back_instructions": ({"admin"}, {"version": 1}),
    "create_login": (set(PEOPLE), {}),
    "send_messages": ({*APPROVERS, "agent"}, None),
}
