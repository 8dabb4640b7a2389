#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An ACP agent that does what its prompt says; it reads the launcher's block first, as the launcher would."""
import json
import os
import sys
import time
import uuid

store, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

if mode == "missing":
    sys.stderr.write("launch: test-agent: No such file or directory\n")
    sys.exit(127)

head = b""
while not head.endswith(b"\n"):
    byte = stdin.read(1)
    if not byte:
        sys.exit(125)
    head += byte
assert head.startswith(b"ERRAND1 "), head
block = stdin.read(int(head.split()[1]))
env = {}
for record in block.split(b"\0"):
    if record.startswith(b"E"):
        name, value = record[1:].decode().split("=", 1)
        env[name] = value

if mode == "crash-start":
    sys.stderr.write("fatal: cannot find my own feet\n")
    sys.exit(9)
if mode == "hang-start":
    while stdin.read(1):
        pass
    sys.exit(0)


def send(message):
    message["jsonrpc"] = "2.0"
    stdout.write(json.dumps(message).encode() + b"\n")
    stdout.flush()


def update(session, update_kind, **fields):
    send({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": update_kind, **fields}}})


def say(session, text):
    update(session, "agent_message_chunk", content={"type": "text", "text": text})


def path_of(session):
    return os.path.join(store, session + ".json")


def load(session):
    with open(path_of(session)) as file:
        return json.load(file)


def save(session, history):
    with open(path_of(session), "w") as file:
        json.dump(history, file)


def read():
    line = stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(session):
    send({"id": 77, "method": "session/request_permission", "params": {
        "sessionId": session,
        "toolCall": {"toolCallId": "call-1", "title": "rm -rf build", "kind": "execute", "status": "pending"},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    cancelled = False
    while True:
        message = read()
        if message.get("method") == "session/cancel":
            cancelled = True
        if message.get("id") == 77:
            outcome = message["result"]["outcome"]
            say(session, "outcome " + outcome.get("optionId", outcome["outcome"]))
            if outcome["outcome"] == "cancelled":
                cancelled = True
            return "cancelled" if cancelled else "end_turn"


def tool(session):
    update(session, "tool_call", toolCallId="edit-1", title="write hello.txt", kind="edit", status="in_progress")
    update(session, "tool_call_update", toolCallId="edit-1", status="completed",
           content=[{"type": "diff", "path": "/workspace/hello.txt", "oldText": "one\n", "newText": "one\ntwo\n"}])
    return "end_turn"


def turn(session, text):
    verb, _, rest = text.partition(" ")
    if verb == "say":
        for word in rest.split():
            say(session, word + " ")
    elif verb == "nonce":
        nonce = env["OPENAI_API_KEY"]
        say(session, "it is " + nonce[:10])
        say(session, nonce[10:] + " indeed")
    elif verb == "env":
        say(session, " ".join(sorted(env)))
    elif verb == "history":
        say(session, "before: %d" % (len(load(session)) - 1))
    elif verb == "ask":
        return ask(session)
    elif verb == "tool":
        return tool(session)
    elif verb == "wait":
        say(session, "waiting")
        while read().get("method") != "session/cancel":
            pass
        return "cancelled"
    elif verb == "deaf":
        say(session, "not listening")
        while True:
            read()
    elif verb == "crash":
        sys.stderr.write("panic: the scripted end\n")
        sys.stderr.flush()
        os._exit(3)
    elif verb == "gate":
        while not os.path.exists(os.path.join(store, rest)):
            time.sleep(0.02)
        say(session, "through")
    return "end_turn"


while True:
    request = read()
    method, params, number = request.get("method"), request.get("params") or {}, request.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1,
                                       "agentInfo": {"name": "scripted", "version": "1.2"},
                                       "agentCapabilities": {"loadSession": mode != "no-load"},
                                       "authMethods": []}})
    elif method == "session/new":
        session = str(uuid.uuid4())
        save(session, [])
        send({"id": number, "result": {"sessionId": session}})
    elif method == "session/load":
        session = params["sessionId"]
        if not os.path.exists(path_of(session)):
            send({"id": number, "error": {"code": -32602, "message": "no such session"}})
            continue
        for text in load(session):
            update(session, "user_message_chunk", content={"type": "text", "text": text})
        send({"id": number, "result": {}})
    elif method == "session/prompt":
        session, text = params["sessionId"], params["prompt"][0]["text"]
        save(session, load(session) + [text])
        send({"id": number, "result": {"stopReason": turn(session, text)}})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "unknown method"}})
