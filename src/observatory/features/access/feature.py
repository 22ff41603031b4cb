"""What access registers with the gateway."""

from __future__ import annotations

from observatory.features.access.routes import god_mode
from observatory.features.access.routes_sign_ins import SIGN_IN, sign_ins
from observatory.features.access.types import (
    Disabled,
    EndedLogin,
    KeyItem,
    LoginAnswer,
    LoginItem,
    NewTenantAnswer,
    PersonItem,
    Revoked,
    RoleAnswer,
    TenantItem,
    UserItem,
    Whoami,
)
from observatory.http.answers import Page
from observatory.http.feature import Feature

FEATURE = Feature(
    routes=(
        *SIGN_IN,
        god_mode,
        sign_ins,
    ),
    answers={
        "list_tenants": Page[TenantItem],
        "create_tenant": NewTenantAnswer,
        "list_users": Page[UserItem],
        "list_people": Page[PersonItem],
        "create_user": UserItem,
        "disable_user": Disabled,
        "list_keys": Page[KeyItem],
        "create_key": KeyItem,
        "revoke_key": Revoked,
        "change_role": RoleAnswer,
        "create_login": LoginAnswer,
        "list_logins": Page[LoginItem],
        "end_login": EndedLogin,
        "whoami": Whoami,
    },
)
