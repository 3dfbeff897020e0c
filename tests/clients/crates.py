"""What the agents in Python look up, and where; and what they are asked when the upstream is to fail."""

import re
import uuid

LOG = "\n".join(
    f"crate {n} stands in row {n % 17}, weighs {n * 37 % 911} kg and was last seen on day {n % 31}" for n in range(400)
)
UUID = r"[0-9a-f]{8}-[0-9a-f-]{27}"
ASKED = 'Look it up: {"name": "read_log", "arguments": {"path": "crates.log"}}'


def fault(kind, times):
    """A question whose first answers are faults of the upstream."""
    return f"fault {kind} {times} times: {uuid.uuid4()}"


def shown(error):
    """What a program can tell of an error."""
    return [type(error).__name__, getattr(error, "status_code", None), re.sub(UUID, "ID", str(error))]


def runs(kinds):
    """Without repeats: how many deltas follow each other depends on how the text arrives."""
    return [kind for at, kind in enumerate(kinds) if at == 0 or kind != kinds[at - 1]]
