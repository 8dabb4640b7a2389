# SPDX-License-Identifier: MIT
"""The agent of `errand-box maint selftest`: speaks ACP, needs no model, and writes down every prompt it is given.

One turn, always alike: a tool call, a question, some words. /workspace/prompts gets a line a prompt before anything
else is done, so that one that is given twice is there twice. Sessions are files in its home, as real agents keep them.
"""
import json
import os
import select
import sys

STORE = os.path.join(os.environ["HOME"], "conversations")
PROMPTS = "/workspace/prompts"
WORDS = 6
PAUSE_S = 0.02
OPTIONS = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
           {"optionId": "no", "name": "Reject", "kind": "reject_once"}]
ABILITIES = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True},
             "agentInfo": {"name": "selftest", "version": "1"}}

buffered = b""


def send(message):
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def receive(timeout=None):
    """The next message; None when there is none in time. The end of the input is the end of the agent."""
    global buffered
    while b"\n" not in buffered:
        if timeout is not None and not select.select([0], [], [], timeout)[0]:
            return None
        got = os.read(0, 65536)
        if not got:
            sys.exit(0)
        buffered += got
    line, buffered = buffered.split(b"\n", 1)
    return json.loads(line)


def update(session, what, **fields):
    send({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": what, **fields}}})


def say(session, text, what="agent_message_chunk"):
    update(session, what, content={"type": "text", "text": text})


def path_of(session):
    return os.path.join(STORE, os.path.basename(session))


def append(path, line):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.write(descriptor, line.encode() + b"\n")
    os.fsync(descriptor)
    os.close(descriptor)


def is_cancel(message):
    return message is not None and message.get("method") == "session/cancel"


def ask(session):
    """TRUE: cancelled."""
    call = {"toolCallId": "call-%d" % os.getpid(), "title": "touch work", "kind": "execute", "status": "pending"}
    update(session, "tool_call", **call)
    send({"id": 1, "method": "session/request_permission",
          "params": {"sessionId": session, "toolCall": call, "options": OPTIONS}})
    cancelled = False
    while True:
        message = receive()
        cancelled = cancelled or is_cancel(message)
        if message.get("id") == 1 and "method" not in message:
            outcome = message.get("result", {}).get("outcome", {}).get("outcome")
            status = "completed" if outcome == "selected" else "failed"
            update(session, "tool_call_update", toolCallId=call["toolCallId"], status=status)
            return cancelled or outcome == "cancelled"


def turn(session, prompt):
    append(PROMPTS, prompt)
    append(path_of(session), prompt)
    if ask(session):
        return "cancelled"
    for number in range(WORDS):
        say(session, "word %d; " % number)
        if is_cancel(receive(PAUSE_S)):
            return "cancelled"
    return "end_turn"


def answer(method, params):
    if method == "initialize":
        return ABILITIES
    if method == "session/new":
        session = os.urandom(8).hex()
        append(path_of(session), "begun")
        return {"sessionId": session}
    if method == "session/load":
        with open(path_of(params["sessionId"]), encoding="utf-8") as file:
            for line in file:
                say(params["sessionId"], line, "user_message_chunk")
        return {}
    if method == "session/prompt":
        text = "".join(block.get("text", "") for block in params["prompt"])
        return {"stopReason": turn(params["sessionId"], text.strip())}
    raise KeyError(method)


def main():
    os.makedirs(STORE, 0o700, exist_ok=True)
    while True:
        message = receive()
        if "id" not in message or "method" not in message:
            continue
        try:
            send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
        except (KeyError, OSError) as error:
            send({"id": message["id"], "error": {"code": -32603, "message": repr(error)}})


main()
