"""A SuperNode is a terminal: private data and the front half of the policy."""

from __future__ import annotations

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from tilp.federated import Terminal

from .common import RECORD, values

app = ClientApp()
STATE = "terminal"


def answer(message: Message, **entries: int | bytes) -> Message:
    return Message(RecordDict({RECORD: ConfigRecord(dict(entries))}), reply_to=message)


@app.query("who")
def who(message: Message, context: Context) -> Message:
    """Which terminal this node is."""
    return answer(message, terminal=int(context.node_config["terminal"]))


@app.train("exchange")
def exchange(message: Message, context: Context) -> Message:
    """One message of the split engine. What the terminal holds is kept in the state of the node."""
    config = context.run_config
    kept = context.state.get(STATE)
    terminal = Terminal(
        str(config["scenario"]),
        int(context.node_config["terminal"]),
        seed=int(config["seed"]),
        set=values(config),
        state=None if kept is None else kept["bytes"],
    )
    reply = terminal.handle(message.content[RECORD]["bytes"])
    context.state[STATE] = ConfigRecord({"bytes": terminal.save()})
    return answer(message, bytes=reply)
