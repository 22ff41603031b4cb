"""A gateway for whoever only speaks; tests of control put a controlling one in its place."""

from collections.abc import Iterator

import pytest

from tests.unit.sdk.sdk_gateway import FakeGateway, running


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with running() as one:
        yield one
