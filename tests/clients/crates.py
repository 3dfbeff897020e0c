"""What the agents in Python look up, and where."""

LOG = "\n".join(
    f"crate {n} stands in row {n % 17}, weighs {n * 37 % 911} kg and was last seen on day {n % 31}" for n in range(400)
)
ASKED = 'Look it up: {"name": "read_log", "arguments": {"path": "crates.log"}}'


def runs(kinds):
    """Without repeats: how many deltas follow each other depends on how the text arrives."""
    return [kind for at, kind in enumerate(kinds) if at == 0 or kind != kinds[at - 1]]
