"""An agent of the Python SDK in a process of its own, led by a test over stdin."""

from __future__ import annotations

import json
import sys

from observatory import Agent
from observatory.sdk.delivery import Delivery

name, door, delivery = sys.argv[1:4]
agent = Agent(name, **json.loads(door), control=False, delivery=Delivery(**json.loads(delivery)))
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)  # noqa: S307  (the test's own words)
