"""What budgets registers with the gateway."""

from __future__ import annotations

from observatory.features.budgets.routes import BudgetItem, RemovedBudget, budgets
from observatory.http.answers import Page
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(budgets,),
    answers={
        "list_budgets": Page[BudgetItem],
        "put_budget": BudgetItem,
        "remove_budget": RemovedBudget,
    },
)
