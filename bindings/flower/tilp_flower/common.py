"""What both sides agree on."""

from __future__ import annotations

from typing import Any

#: Kinds of messages: who a node is, and a message of the split engine.
WHO = "query.who"
EXCHANGE = "train.exchange"
#: The one record of a message.
RECORD = "tilp"


def values(config: Any) -> dict[str, Any]:
    """What the configuration of a run changes in the scenario."""
    return {"cell.n_terminals": int(config["terminals"]), "rounds": int(config["rounds"])}
