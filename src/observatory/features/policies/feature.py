"""What policies registers with the gateway."""

from __future__ import annotations

from observatory.features.policies.routes import PolicyItem, PolicyList, RemovedPolicy, policies
from observatory.features.policies.routes_dry_run import DryRunAnswer
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(policies,),
    answers={
        "list_policies": PolicyList,
        "create_policy": PolicyItem,
        "order_policies": PolicyList,
        "replace_policy": PolicyItem,
        "remove_policy": RemovedPolicy,
        "try_policies": DryRunAnswer,
    },
)
