"""The ServerApp: TiLP's base station decides, and Flower carries what the two halves exchange.

A terminal gets one message for each step of its part of a round: the order, with the activation as its answer,
the gradient, and at an aggregation the upload of its copy. A node that is gone or silent is left out of the
round.
"""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future
from typing import Any

import tilp.federated
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from .common import EXCHANGE, RECORD, WHO, values

app = ServerApp()
PAUSE_S = 0.02


class Carrier:
    """Carries messages to terminals and their answers back. Only one thread talks to Flower."""

    def __init__(self, grid: Grid, answer_s: float) -> None:
        self.grid, self.answer_s = grid, answer_s
        self.nodes: dict[int, int] = {}
        self.asked: queue.SimpleQueue[tuple[int, bytes, Future[bytes]]] = queue.SimpleQueue()
        self.open: dict[str, tuple[int, float, Future[bytes]]] = {}
        self.n_messages = 0

    def exchange(self, terminal: int, message: bytes) -> bytes:
        """Called by the threads of the run."""
        answer: Future[bytes] = Future()
        self.asked.put((terminal, message, answer))
        return answer.result()

    def find_nodes(self, n_terminals: int, patience_s: float) -> None:
        """Waits until as many nodes are there, and asks each which terminal it is."""
        end = time.monotonic() + patience_s
        while len(nodes := list(self.grid.get_node_ids())) < n_terminals:
            if time.monotonic() > end:
                raise RuntimeError(f"{len(nodes)} nodes, expected {n_terminals}")
            time.sleep(0.5)
        ask = [Message(RecordDict(), dst_node_id=node, message_type=WHO) for node in nodes]
        for reply in self.grid.send_and_receive(ask, timeout=self.answer_s):
            if not reply.has_error():
                terminal = int(reply.content[RECORD]["terminal"])
                self.nodes[terminal] = reply.metadata.src_node_id
        if sorted(self.nodes) != list(range(n_terminals)):
            raise RuntimeError(f"terminals {sorted(self.nodes)}, expected 0 to {n_terminals - 1}")

    def carry(self) -> None:
        """Sends what was asked and gives answers to those who wait."""
        asked = []
        while not self.asked.empty():
            asked.append(self.asked.get())
        if asked or self.open:
            there = set(self.grid.get_node_ids())
            self._send([one for one in asked if self._is_there(one, there)])
            self._receive(there)

    def _is_there(self, one: tuple[int, bytes, Future[bytes]], there: set[int]) -> bool:
        terminal, _, answer = one
        if self.nodes.get(terminal) in there:
            return True
        answer.set_exception(ConnectionError(f"the node of terminal {terminal} is gone"))
        return False

    def _send(self, asked: list[tuple[int, bytes, Future[bytes]]]) -> None:
        if not asked:
            return
        messages = [
            Message(
                RecordDict({RECORD: ConfigRecord({"bytes": message})}),
                dst_node_id=self.nodes[terminal],
                message_type=EXCHANGE,
                ttl=self.answer_s,
            )
            for terminal, message, _ in asked
        ]
        end = time.monotonic() + self.answer_s
        for key, (terminal, _, answer) in zip(self.grid.push_messages(messages), asked):
            if key:
                self.open[key] = (terminal, end, answer)
                self.n_messages += 1
            else:
                answer.set_exception(ConnectionError(f"no message to terminal {terminal}"))

    def _receive(self, there: set[int]) -> None:
        if not self.open:
            return
        for reply in self.grid.pull_messages(list(self.open)):
            terminal, _, answer = self.open.pop(reply.metadata.reply_to_message_id)
            if reply.has_error():
                answer.set_exception(RuntimeError(f"terminal {terminal}: {reply.error.reason}"))
            else:
                answer.set_result(reply.content[RECORD]["bytes"])
        for key, (terminal, end, answer) in list(self.open.items()):
            if self.nodes[terminal] not in there or time.monotonic() > end:
                del self.open[key]
                answer.set_exception(TimeoutError(f"no answer of terminal {terminal}"))


def conduct(config: Any, carrier: Carrier, result: Future[Any]) -> None:
    def show(row: dict[str, Any]) -> None:
        took_part, all_asked = row["n_took_part"], row["n_scheduled"]
        print(f"round {row['round']}: {took_part} of {all_asked} took part", flush=True)

    try:
        run = tilp.federated.run(
            str(config["scenario"]),
            carrier.exchange,
            str(config["method"]),
            seed=int(config["seed"]),
            set=values(config),
            out=str(config["out"]),
            on_round=show,
        )
        result.set_result(run)
    except BaseException as error:
        result.set_exception(error)


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    carrier = Carrier(grid, float(config["answer-s"]))
    carrier.find_nodes(int(config["terminals"]), 60.0)
    result: Future[Any] = Future()
    worker = threading.Thread(target=conduct, args=(config, carrier, result), daemon=True)
    worker.start()
    while worker.is_alive():
        carrier.carry()
        time.sleep(PAUSE_S)
    run = result.result()
    print(f"{carrier.n_messages} messages; success {run.summary['success_final']:.3f}; {run.path}", flush=True)
