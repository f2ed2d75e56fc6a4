"""A terminal of a testbed in Python, with grpcio and NumPy only.

    python terminal.py --id 1 --server 127.0.0.1:7700 --data terminal-1.safetensors --state state-1

It shows that the contract (docs/reference/testbed-protocol.md) can be kept by a program in another
language. It draws its minibatches itself, so a run with it is sound but not the one of `tilp run`
bit for bit. It trains all parameters (no adapters), at cuts before the last layer.
"""

import argparse
import json
import os
import queue
import struct
import sys
import threading
import time

import grpc
import numpy as np

import messages as m
import policy
import testbed_pb2 as pb
import testbed_pb2_grpc as rpc

VERSION, PART = 1, 65536


def read_safetensors(path):
    """Tensors of 32-bit floats by name."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        head, body = json.loads(file.read(length)), file.read()
    tensors = {}
    for name, about in head.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = about["data_offsets"]
            tensors[name] = np.frombuffer(body[start:end], "<f4").reshape(about["shape"])
    return tensors


class FrontHalf:
    """What `TerminalHalf` is in Rust: private data, copies of front layers, answers to messages."""

    def __init__(self, id_, data):
        self.id, self.data = id_, data
        self.rounds = sorted(int(name.split(".")[1]) for name in data if name.startswith("observations."))

    def prepare(self, training):
        self.a, self.n_layers = training.architecture, training.architecture.blocks + 2
        if training.HasField("adapters"):
            raise SystemExit("error: adapters, expected a run that trains all parameters")
        self.sizes = [policy.n_parameters(self.a, layer) for layer in range(1, self.n_layers + 1)]
        kind, _, _, body = m.read_header(training.start)
        self.start = m.read_weights(kind, body, self.sizes)

    def reset(self, membership):
        layers = enumerate(self.start, 1) if membership == 0 else []
        self.weights = {layer: weights.copy() for layer, weights in layers}
        self.states, self.pending = {}, None

    def handle(self, message):
        kind, context, first, body = m.read_header(message)
        if context[1] != self.id:
            raise m.Refused(f"terminal = {context[1]}, expected {self.id}")
        answers = {
            m.LAYER_WEIGHTS: self.receive, m.HALF_WEIGHTS: self.receive, m.BYTE_WEIGHTS: self.receive,
            m.TRAIN: self.train, m.CUT_GRADIENT: self.finish, m.COLLECT: self.upload, m.AGGREGATED: self.forget,
        }
        if kind not in answers:
            raise m.Refused(f"kind = {kind}, expected one of {sorted(answers)}")
        return answers[kind](kind, context, first, body)

    def rng(self, round_, purpose):
        return np.random.default_rng([self.id, round_, purpose])

    def receive(self, kind, context, first, body):
        layers = range(first, context[2] + 1)
        for layer, weights in zip(layers, m.read_weights(kind, body, [self.sizes[layer - 1] for layer in layers])):
            self.weights[layer] = weights
        self.pending = None
        return m.header(m.ACKNOWLEDGED, context)

    def batch(self, round_, samples):
        since = max(first for first in self.rounds if first <= round_)
        observations, actions = self.data[f"observations.{since}"], self.data[f"actions.{since}"]
        chosen = self.rng(round_, 0).permutation(len(actions))[:samples]
        return observations[chosen], actions[chosen]

    def train(self, _kind, context, _first, body):
        round_, _, cut = context
        q, _, _, _, samples, compressor = m.read_train(body)
        if cut >= self.n_layers or compressor != 0:
            raise m.Refused("expected a cut before the last layer, and quantisation")
        self.pending = (context, body)
        activation, _ = self.forward()
        payload, _ = m.encode_payload(activation, q, self.rng(round_, 1))
        _, actions = self.batch(round_, samples)
        labels = actions.astype("<f4")
        return m.header(m.ACTIVATION, context) + struct.pack("<II", len(payload), labels.size) + payload + labels.tobytes()

    def forward(self):
        (round_, _, cut), body = self.pending
        observations, _ = self.batch(round_, m.read_train(body)[4])
        return policy.forward(self.a, self.weights, observations.astype(np.float32), cut)

    def finish(self, _kind, context, _first, body):
        if self.pending is None or self.pending[0] != context:
            raise m.Refused(f"a gradient of {context}, expected one of the pending order")
        cut = context[2]
        _, rate, optimiser, clip, _, _ = m.read_train(self.pending[1])
        (loss,) = struct.unpack_from("<f", body)
        activation, caches = self.forward()
        flow = m.decode_payload(body[4:], *activation.shape)
        gradients = policy.backward(self.a, self.weights, caches, flow.astype(np.float32), cut)
        norm = float(np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients.values())))
        factor = clip / (norm + 1e-6) if clip > 0 else 1.0
        for layer, gradient in gradients.items():
            gradient = gradient * np.float32(min(factor, 1.0))
            policy.step(optimiser, self.weights[layer], gradient, self.states.setdefault(layer, {}), rate)
        self.pending = None
        return m.done(context, loss, norm, len(activation))

    def upload(self, _kind, context, first, body):
        layers = [self.weights[layer] for layer in range(first, context[2] + 1)]
        return m.write_weights(context, first, layers, body[0], self.rng(context[0], 2 + first))

    def forget(self, _kind, context, _first, body):
        self.weights, self.pending = {}, None
        if body[0] == 0:
            self.states = {}
        return m.header(m.ACKNOWLEDGED, context)

    def save(self):
        arrays = {f"weights.{layer}": weights for layer, weights in self.weights.items()}
        for layer, state in self.states.items():
            arrays |= {f"state.{layer}.{name}": np.asarray(value) for name, value in state.items()}
        if self.pending:
            arrays["pending"] = np.frombuffer(m.header(m.TRAIN, self.pending[0]) + self.pending[1], np.uint8)
        return arrays

    def restore(self, arrays):
        self.weights, self.states, self.pending = {}, {}, None
        for name, value in arrays.items():
            part = name.split(".")
            if part[0] == "weights":
                self.weights[int(part[1])] = value.copy()
            elif part[0] == "state":
                value = int(value) if part[2] == "steps" else value.copy()
                self.states.setdefault(int(part[1]), {})[part[2]] = value
            elif name == "pending":
                _, context, _, body = m.read_header(value.tobytes())
                self.pending = (context, body)


class Agent:
    """Answers every request once: state and answer are saved together before the answer is sent."""

    def __init__(self, half, folder):
        os.makedirs(folder, exist_ok=True)
        self.half, self.path = half, os.path.join(folder, "journal.npz")
        self.run, self.membership, self.last = None, None, None

    def welcome(self, welcome, payload):
        if self.run == welcome.run:
            return
        self.half.prepare(pb.Training.FromString(payload))
        self.run, self.membership, self.last = welcome.run, None, None
        if os.path.exists(self.path):
            with np.load(self.path, allow_pickle=False) as file:
                arrays = dict(file)
            about = json.loads(arrays.pop("about").tobytes())
            if about["run"] == self.run:
                answer = pb.Answer.FromString(arrays.pop("answer").tobytes())
                payload = arrays.pop("payload").tobytes()
                self.half.reset(about["membership"])
                self.half.restore(arrays)
                self.membership, self.last = about["membership"], (answer.key, answer, payload)

    def respond(self, request, payload):
        last = self.last[0] if self.last else None
        if last == request.key and self.membership == request.membership:
            return self.last[1], self.last[2]
        previous = request.previous if request.HasField("previous") else None
        if self.membership == request.membership:
            follows = previous == last
        else:
            follows = previous is None and (self.membership is None or self.membership < request.membership)
        if not follows:
            return pb.Answer(key=request.key, refused=True, out_of_step=True), b"out of step"
        if self.membership != request.membership:
            self.half.reset(request.membership)
            self.membership = request.membership
        start = time.monotonic()
        try:
            payload, refused = self.half.handle(payload), False
        except m.Refused as error:
            payload, refused = str(error).encode(), True
        answer = pb.Answer(key=request.key, compute_s=time.monotonic() - start, refused=refused)
        self.last = (request.key, answer, payload)
        self.save()
        return answer, payload

    def save(self):
        about = json.dumps({"run": self.run, "membership": self.membership}).encode()
        raw = {"about": about, "answer": self.last[1].SerializeToString(), "payload": self.last[2]}
        arrays = self.half.save() | {name: np.frombuffer(value, np.uint8) for name, value in raw.items()}
        with open(self.path + ".new", "wb") as file:
            np.savez(file, **arrays)
        os.replace(self.path + ".new", self.path)


def parts_of(payload):
    """The first part, and the others."""
    return payload[:PART], [payload[at : at + PART] for at in range(PART, len(payload), PART)]


def serve(stub, hello, agent):
    """One stream from hello to its end. Returns whether the run is over."""
    frames = queue.Queue()
    frames.put(pb.Up(hello=hello))
    stop = threading.Event()

    def beat(seconds):
        count = 0
        while not stop.wait(seconds):
            count += 1
            frames.put(pb.Up(heartbeat=pb.Heartbeat(count=count)))

    head, received = None, b""
    try:
        for down in stub.Attach(iter(frames.get, None)):
            kind = down.WhichOneof("body")
            if kind == "goodbye":
                print(down.goodbye.reason, file=sys.stderr)
                return down.goodbye.finished
            if kind == "heartbeat":
                continue
            if kind == "part":
                received += down.part.payload
            else:
                head = getattr(down, kind)
                received = head.payload
            if len(received) < head.n_bytes:
                continue
            if isinstance(head, pb.Welcome):
                agent.welcome(head, received)
                threading.Thread(target=beat, args=(head.heartbeat_s,), daemon=True).start()
            else:
                answer, payload = agent.respond(head, received)
                first, others = parts_of(payload)
                whole = pb.Answer()
                whole.CopyFrom(answer)
                whole.n_bytes, whole.payload = len(payload), first
                frames.put(pb.Up(answer=whole))
                for part in others:
                    frames.put(pb.Up(part=pb.Part(payload=part)))
        return False
    finally:
        stop.set()
        frames.put(None)


def channel(server, tls):
    if tls is None:
        return grpc.insecure_channel(server)
    read = lambda name: open(os.path.join(tls, name), "rb").read()
    return grpc.secure_channel(server, grpc.ssl_channel_credentials(read("ca.pem"), read("key.pem"), read("cert.pem")))


def main():
    parser = argparse.ArgumentParser(description="A terminal of a TiLP testbed.")
    parser.add_argument("--id", type=int, required=True)
    parser.add_argument("--server", required=True, help="HOST:PORT of the base station")
    parser.add_argument("--data", required=True, help="private data, a safetensors file")
    parser.add_argument("--state", required=True, help="folder for the journal")
    parser.add_argument("--tls", help="folder with ca.pem, cert.pem and key.pem")
    arguments = parser.parse_args()
    data = read_safetensors(arguments.data)
    agent = Agent(FrontHalf(arguments.id, data), arguments.state)
    hello = pb.Hello(version=VERSION, role=pb.ROLE_TERMINAL, id=arguments.id, samples=len(data["actions.0"]), software="python terminal")
    final = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)
    pause = 0.1
    while True:
        try:
            with channel(arguments.server, arguments.tls) as line:
                if serve(rpc.BaseStationStub(line), hello, agent):
                    return
            pause = 0.1
        except grpc.RpcError as error:
            if error.code() in final:
                raise SystemExit(f"error: {error.details()}")
            pause = min(2 * pause, 5)
        time.sleep(pause)


if __name__ == "__main__":
    main()
