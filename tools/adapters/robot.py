#!/usr/bin/env python3
"""A robot adapter for equipment without software of its own: a person starts the episode, watches it and says
whether it succeeded. Lines as in docs/reference/adapters.md. Replace `run_episode` to drive a real robot.

robot.py [FILE]: the person is asked at the terminal, since standard input and output belong to the lines;
with FILE the replies (y or n, one a line) are read from it."""

import json
import sys


def run_episode(model, episode, replies):
    """True if the robot did its task."""
    print(f"episode {episode} with {model}: success? [y/n]", file=sys.stderr, flush=True)
    for reply in iter(replies.readline, ""):
        if reply.strip().lower() in ("y", "n"):
            return reply.strip().lower() == "y"
    raise RuntimeError("no answer")


def main():
    print(json.dumps({"version": 1, "adapter": "robot", "name": "watched", "modelled": False}), flush=True)
    with open(sys.argv[1] if len(sys.argv) > 1 else "/dev/tty", encoding="utf-8") as replies:
        for line in sys.stdin:
            request = json.loads(line)
            answer = {"version": 1, "id": request["id"]}
            try:
                ask = request["ask"]
                answer["answer"] = {"success": run_episode(ask["model"], ask["episode"], replies)}
            except RuntimeError as error:
                answer["error"] = str(error)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
