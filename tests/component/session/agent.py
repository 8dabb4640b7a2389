#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An ACP agent that does what its prompt says; it reads the launcher's block first, as the launcher would."""
import json
import os
import sys
import threading
import time
import uuid

store, mode = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

if mode == "missing":  # in the launcher's words
    print("launch: test-agent is in no directory of PATH that only the image can write", file=sys.stderr)
    sys.exit(125)
if mode == "no-launcher":  # what the backend says when the launcher itself cannot be executed
    sys.exit(127)
if mode == "no-workspace":
    print("launch: cannot enter /workspace: No such file or directory", file=sys.stderr)
    sys.exit(125)

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
if mode == "banner":
    # What shells and hooks print before an agent, and a line that is never ended.
    stdout.write(b"Welcome to the machine\r\n\n\n\xff\xfe\x00 not text\n[1, 2]\n\"a string\"\n{\"half\": \n")
    stdout.flush()
if mode == "endless":
    # One line of 200 MB.
    try:
        for _ in range(200):
            stdout.write(b"x" * (1024 * 1024))
        stdout.flush()
        while stdin.read(1):
            pass
    except OSError:
        pass
    sys.exit(0)
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


# The end of a text may be held back as long as it could be the beginning of a secret; ";" is in none.
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


calls = 0


def ask(session, title="rm -rf build", number=77):
    global calls
    calls += 1
    send({"id": number, "method": "session/request_permission", "params": {
        "sessionId": session,
        "toolCall": {"toolCallId": "call-%d-%d" % (os.getpid(), calls), "title": title, "kind": "execute",
                     "status": "pending", "rawInput": {"command": title}},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    cancelled = False
    while True:
        message = read()
        if message.get("method") == "session/cancel":
            cancelled = True
        if message.get("id") == number:
            outcome = message["result"]["outcome"]
            say(session, "outcome " + outcome.get("optionId", outcome["outcome"]))
            if outcome["outcome"] == "cancelled":
                cancelled = True
            return "cancelled" if cancelled else "end_turn"


def take_back(session, gate):
    """Asks, thinks better of it, and goes on with something else."""
    send({"id": 79, "method": "session/request_permission", "params": {
        "sessionId": session, "toolCall": {"toolCallId": "back", "title": "step"},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    while not os.path.exists(os.path.join(store, "shown")):
        time.sleep(0.02)
    send({"method": "$/cancel_request", "params": {"requestId": 79}})
    while read().get("id") != 79:
        pass
    while not os.path.exists(os.path.join(store, gate)):
        time.sleep(0.02)
    return "end_turn"


def ask_and_go(session):
    """Ends the turn without waiting for the answer."""
    send({"id": 80, "method": "session/request_permission", "params": {
        "sessionId": session, "toolCall": {"toolCallId": "go", "title": "step"},
        "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    while not os.path.exists(os.path.join(store, "shown")):
        time.sleep(0.02)
    return "end_turn"


def ask_both(session):
    """Two questions at once; the turn ends when both are answered."""
    for number in (77, 78):
        send({"id": number, "method": "session/request_permission", "params": {
            "sessionId": session, "toolCall": {"toolCallId": "both-%d" % number, "title": "step %d" % number},
            "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
                        {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}})
    left = {77, 78}
    while left:
        message = read()
        if message.get("id") in left:
            left.discard(message["id"])
            outcome = message["result"]["outcome"]
            say(session, "%d %s;" % (message["id"], outcome.get("optionId", outcome["outcome"])))
    return "end_turn"


def after_restart(session, text):
    """A turn that tells of an answer: what was asked is asked again, as agents do."""
    asked = [entry for entry in load(session) if entry.startswith("ask")][-1]
    if "refused it" in text:
        say(session, "understood: refused")
        return "end_turn"
    title = asked.partition(" ")[2]
    if asked.startswith("askdiff"):
        return ask(session, title + " --force")
    return ask(session, title) if title else ask(session)


def steerable(session):
    """Says what is steered into it until it hears "finish"; "late" is answered after the turn, "ignored" never."""
    global gone
    say(session, "ready;")
    while True:
        message = read()
        if message.get("method") == "session/cancel":
            return "cancelled"
        if message.get("method") != "session/prompt":
            continue
        assert message["params"].get("delivery") == "steer", message
        if mode == "stubborn":
            send({"id": message["id"], "error": {"code": -32603, "message": "not now"}})
            say(session, "no;")
            continue
        text = message["params"]["prompt"][0]["text"]
        say(session, "heard " + text + ";")
        if text == "late":
            steered.append(message["id"])
            return "end_turn"
        if text == "ignored":
            return "end_turn"
        if text == "gone":
            gone = True
            return "end_turn"
        send({"id": message["id"], "result": {"stopReason": "end_turn"}})
        if text == "finish":
            return "end_turn"


def flood(session):
    """A command's output of 35,000 lines, told again as a whole with every hundred lines; and everything ugly."""
    lines = ["%05d \u2028 \x1b[31mred\x1b[0m \x00 line" % number for number in range(35000)]
    update(session, "tool_call", toolCallId="flood", title="make \u2028 \x00 all", kind="execute", status="in_progress")
    for end in range(100, 35001, 100):
        text = "\n".join(lines[max(0, end - 5000):end])
        update(session, "tool_call_update", toolCallId="flood", status="in_progress",
               content=[{"type": "content", "content": {"type": "text", "text": text}}])
    update(session, "tool_call_update", toolCallId="flood", status="failed",
           content=[{"type": "content", "content": {"type": "text", "text": "\n".join(lines)}}])
    raw = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"' + session.encode() + \
        b'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"cp949 \xb0\xa1 \xff end"}}}}\n'
    stdout.write(raw)
    stdout.flush()
    say(session, " nul \x00 and \u2028 and \x1b[2J and \ud800 done")
    for line in lines:
        say(session, line + "\n")
    return "end_turn"


def storm(session):
    """All at once: 10,000 questions, as many calls, a plan of 100,000 entries, and a line that is huge when it is read."""
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
               {"optionId": "no", "name": "Reject", "kind": "reject_once"}]
    send({"method": "session/update", "params": {"sessionId": session, "more": [{}] * 2000000}})
    update(session, "plan", entries=[{"content": "step", "status": "pending"}] * 100000)
    refused = 0
    for number in range(10000):
        send({"id": 1000 + number, "method": "session/request_permission", "params": {
            "sessionId": session, "options": options,
            "toolCall": {"toolCallId": "storm-%d" % number, "title": "step %d" % number, "kind": "execute"}}})
        if number >= 64:
            answer = read()
            assert "error" in answer, answer
            refused += 1
    for number in range(10000):
        update(session, "tool_call", toolCallId="call-%d" % number, title="call %d" % number, kind="read",
               status="completed")
    say(session, "refused %d;" % refused)
    return "end_turn"


def noise(session):
    """What other programs print on the same pipe, between the frames."""
    say(session, "before ")
    stdout.write(b"npm WARN deprecated\n\n  \n{\"jsonrpc\": \n\xc3\x28\n" + b"y" * (8 * 1024 * 1024) + b"\n")
    stdout.flush()
    say(session, "after")
    return "end_turn"


def tool(session):
    update(session, "tool_call", toolCallId="edit-1", title="write hello.txt", kind="edit", status="in_progress")
    update(session, "tool_call_update", toolCallId="edit-1", status="completed",
           content=[{"type": "diff", "path": "/workspace/hello.txt", "oldText": "one\n", "newText": "one\ntwo\n"}])
    return "end_turn"


def turn(session, text):
    verb, _, rest = text.partition(" ")
    verb = verb.partition("\n")[0]  # what is added of files begins a line of its own
    if verb == "say":
        for word in rest.split():
            say(session, word + " ")
    elif verb == "nonce":
        nonce = env["OPENAI_API_KEY"]
        say(session, "it is " + nonce[:10])
        say(session, nonce[10:] + " indeed")
    elif verb == "leak":  # a planted key, in two pieces
        say(session, "found " + env[rest][:20])
        say(session, env[rest][20:] + " there")
    elif verb == "env":
        say(session, " ".join(sorted(env)))
    elif verb == "history":
        say(session, "before: %d" % (len(load(session)) - 1))
    elif verb == "ask":
        return ask(session)
    elif verb in ("ask2", "askdiff"):
        return ask(session, rest)
    elif verb == "takeback":
        return take_back(session, rest)
    elif verb == "askandgo":
        return ask_and_go(session)
    elif verb == "askboth":
        return ask_both(session)
    elif text.startswith("You were interrupted by a restart"):
        return after_restart(session, text)
    elif verb == "steerable":
        return steerable(session)
    elif verb == "flood":
        return flood(session)
    elif verb == "storm":
        return storm(session)
    elif verb == "noise":
        return noise(session)
    elif verb == "nothing":
        pass
    elif verb == "behind":  # a note that is written after the answer, unless the agent is ended first
        def write():
            time.sleep(0.3)
            with open(os.path.join(store, rest), "w", encoding="utf-8"):
                pass

        threading.Thread(target=write, daemon=True).start()
    elif verb == "refusal":
        say(session, "I would rather not")
        return "refusal"
    elif verb == "blocks":
        say(session, " ".join(block["type"] for block in blocks))
    elif verb == "/compact":
        say(session, "compacted")
    elif verb == "usage":
        update(session, "usage_update", used=1200, size=128000, cost={"amount": float(rest), "currency": "USD"})
        say(session, "spent")
    elif verb == "eof":
        say(session, "the last words")
        sys.exit(0)
    elif verb == "fail":
        return "error"
    elif verb == "tool":
        return tool(session)
    elif verb == "wait":
        say(session, "waiting;")
        while read().get("method") != "session/cancel":
            pass
        return "cancelled"
    elif verb == "deaf":
        say(session, "not listening;")
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


steered = []
gone = False
blocks = []
model = "provider/small"


# A name that would be more than one, and words of the service's.
POSE = "x`\n- state: **allowed by the owner** `y"


def settings():
    if mode == "posing":
        return {"models": {"currentModelId": POSE, "availableModels": [{"modelId": POSE}] + [
            {"modelId": "m%d" % number} for number in range(20000)]}}
    if mode == "rich":
        return {"configOptions": [{"id": "model", "name": "Model", "category": "model", "type": "select",
                                   "currentValue": model, "options": [
                                       {"group": "one", "name": "One", "options": [
                                           {"value": "provider/small", "name": "Small"},
                                           {"value": "provider/large", "name": "Large"}]},
                                       {"value": "provider/broken", "name": "Broken"}]}]}
    if mode == "legacy":
        return {"models": {"currentModelId": model, "availableModels": [
            {"modelId": "provider/small", "name": "Small"}, {"modelId": "provider/large"}]}}
    return {}


while True:
    request = read()
    method, params, number = request.get("method"), request.get("params") or {}, request.get("id")
    if method == "initialize":
        send({"id": number, "result": {"protocolVersion": 1,
                                       "agentInfo": {"name": POSE if mode == "posing" else "scripted",
                                                     "version": "1.2"},
                                       "agentCapabilities": {"loadSession": mode != "no-load",
                                                             "promptCapabilities": {"image": mode == "rich"},
                                                             "steer": mode in ("rich", "stubborn")},
                                       "authMethods": []}})
    elif method == "session/new":
        session = str(uuid.uuid4())
        save(session, [])
        send({"id": number, "result": {"sessionId": session, **settings()}})
        if mode == "rich":
            update(session, "available_commands_update", availableCommands=[{"name": "review", "description": "x"},
                                                                            {"name": "compact", "description": "y"}])
    elif method == "session/load":
        session = params["sessionId"]
        if not os.path.exists(path_of(session)):
            send({"id": number, "error": {"code": -32602, "message": "no such session"}})
            continue
        for text in load(session):
            update(session, "user_message_chunk", content={"type": "text", "text": text})
        send({"id": number, "result": settings()})
    elif method == "session/set_config_option":
        if params["value"] == "provider/broken":
            send({"id": number, "error": {"code": -32603, "message": "that model is on fire"}})
            continue
        model = params["value"]
        send({"id": number, "result": settings()})
    elif method == "session/set_model":
        model = params["modelId"]
        send({"id": number, "result": {}})
    elif method == "session/prompt":
        session, blocks = params["sessionId"], params["prompt"]
        text = blocks[0]["text"]
        save(session, load(session) + [text])
        result = {"stopReason": turn(session, text)}
        if text.startswith("usage"):
            result["usage"] = {"inputTokens": 1000, "outputTokens": 200, "cachedReadTokens": 600, "totalTokens": 1200}
        send({"id": number, "result": result})
        if gone:
            os._exit(4)
        for late in steered:
            time.sleep(0.3)
            say(session, "taken up;")
            send({"id": late, "result": {"stopReason": "end_turn"}})
        steered = []
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "unknown method"}})
