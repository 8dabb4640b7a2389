#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An ACP agent that misbehaves in one named way: agent.py MODE. Used by test-client over pipes."""

import json
import os
import signal
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "plain"
OUT = sys.stdout.buffer
LOCK = threading.Lock()
SID = "session/ß#1"
state = {"permission": None, "next_id": 0, "waiting": {}, "cancelled": threading.Event(), "prompts": 0}


def raw(data):
    with LOCK:
        OUT.write(data)
        OUT.flush()


def send(obj):
    raw(json.dumps(obj, ensure_ascii=False).encode() + b"\n")


def update(name, /, *, session=SID, **fields):
    send({"jsonrpc": "2.0", "method": "session/update",
          "params": {"sessionId": session, "update": {"sessionUpdate": name, **fields}}})


def text(words):
    update("agent_message_chunk", content={"type": "text", "text": words})


def answer(mid, result):
    send({"jsonrpc": "2.0", "result": result, "id": mid})


def fail(mid, code, message, data=None):
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    send({"jsonrpc": "2.0", "id": mid, "error": error})


def ask(method, params, mid=None):
    """Sends a request of our own and waits for its answer."""
    if mid is None:
        mid = state["next_id"]
        state["next_id"] += 1
    event = threading.Event()
    state["waiting"][json.dumps(mid)] = [event, None]
    send({"jsonrpc": "2.0", "id": mid, "method": method, "params": params})
    event.wait()
    return state["waiting"].pop(json.dumps(mid))[1]


OPTIONS = [{"optionId": "yes", "name": "Allow once", "kind": "allow_once"},
           {"optionId": "always", "name": "Always", "kind": "allow_always"},
           {"optionId": "no", "name": "Reject", "kind": "reject_once"}]


def ask_permission(call, options=None, session=SID, mid=None):
    reply = ask("session/request_permission",
                {"sessionId": session, "toolCall": call, "options": OPTIONS if options is None else options}, mid)
    return reply


def outcome(reply):
    return json.dumps(reply.get("result", reply.get("error")), sort_keys=True)


def initialize(mid):
    if MODE == "never-initialize":
        return
    if MODE == "dies-at-once":
        sys.stderr.write("no provider is configured\n")
        sys.stderr.flush()
        os._exit(3)
    version = {"version-2": 2, "version-text": "1"}.get(MODE, 1)
    if MODE == "noise":
        raw(b"Loaded cached credentials.\n\n\x1b[2K\x1b[1GMigrating...\r\n[1]\n\"text\"\n{broken\n")
        raw(b"Starting up... ")
    if MODE == "flood-line":
        block = b"x" * 65536
        for _ in range(3200):
            raw(block)
        raw(b"\n")
    answer(mid, {"protocolVersion": version, "agentInfo": {"name": "test-agent", "version": "7"},
                 "agentCapabilities": {"loadSession": True, "steer": MODE == "steer", "unknownThing": [1],
                                       "sessionCapabilities": {"resume": {}, "list": {}},
                                       "promptCapabilities": {"image": True}},
                 "authMethods": [{"id": "x", "name": None, "type": "surprise"}]})


def new_session(mid):
    if MODE == "auth":
        fail(mid, -32000, "Authentication required", {"details": "run login first"})
        return
    if MODE == "never-opens":
        return
    if MODE == "early":
        update("available_commands_update", availableCommands=[{"name": "x", "description": "y"}])
        update("agent_message_chunk", session="child", content={"type": "text", "text": "not ours"})
    result = {"sessionId": SID, "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"},
                                                                                    {"id": "go", "name": "Go"}]}}
    if MODE == "config":
        result["configOptions"] = [
            {"id": "goal", "name": "Goal", "type": "text", "currentValue": ""},
            {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "p/one",
             "options": [{"group": "P", "name": "P", "options": [{"value": "p/one", "name": "One"},
                                                                 {"value": "p/two", "name": "Two"}]}]}]
    if MODE == "models":
        result["models"] = {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}]}
    answer(mid, result)


def load_session(mid, params):
    if params["sessionId"] != SID:
        fail(mid, -32002, "Resource not found", "no such session")
        return
    update("user_message_chunk", content={"type": "text", "text": "earlier"})
    update("agent_message_chunk", content={"type": "text", "text": "answer"})
    update("tool_call", toolCallId="old", title="Old", kind="edit", status="completed")
    answer(mid, None)


def tools_any_order():
    update("tool_call_update", toolCallId="a", status="in_progress", title=None, content=None)
    update("tool_call", toolCallId="a", title="Write x", kind="edit", status="pending", rawInput={"path": "x"})
    reply = ask_permission({"toolCallId": "a", "rawInput": {}, "status": None, "title": None,
                            "content": [[{"type": "diff", "path": "/w/x", "oldText": None, "newText": "new"}]]})
    update("tool_call_update", toolCallId="a", status="completed", rawOutput="written",
           locations=[{"path": "/w/x", "line": 3}, {"nope": 1}, None])
    # A call known by its permission alone.
    ask_permission({"toolCallId": "b", "title": "Shell", "kind": "execute"})
    update("tool_call_update", toolCallId="b", status="failed")
    update("tool_call", title="no id at all")
    update("tool_call", toolCallId="c", title="T", status="in_progress", content=[{"type": "terminal", "terminalId": "t"}])
    update("tool_call_update", toolCallId="c", _meta={"terminal_output_delta": {"data": "one "}})
    update("tool_call_update", toolCallId="c", _meta={"terminal_output_delta": {"data": "two"}})
    text(outcome(reply))


def prompt(mid, params):
    state["prompts"] += 1
    n = state["prompts"]
    state["cancelled"].clear()
    if MODE == "plain" or MODE == "noise":
        text("one\u2028two")
        raw(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":{"sessionUpdate":'
            b'"agent_message_chunk","content":{"type":"text","text":"\xb0\xa1 \\ud83d \\u0000 end"}}}}\n' % SID.encode())
        raw(b"ExperimentalWarning: something\n")
        answer(mid, {"stopReason": "end_turn", "usage": {"totalTokens": 5}})
    elif MODE == "kinds":
        update("brand_new_kind", x=1)
        update("_kage/turn", phase="end")
        update("_kage/notice", tone="warn", text="careful")
        update("notice", severity="info", title="T", description="D")
        update("usage_update", used=None, size=None)
        update("usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
        update("plan", entries=[{"content": "do", "priority": "high", "status": "pending"}])
        update("current_mode_update", currentModeId="go")
        update("session_info_update", title="Title")
        update("agent_message_chunk", content=None)
        update("agent_message_chunk")
        update("tool_call_update")
        update(None)
        send({"jsonrpc": "2.0", "method": "session/update", "params": {"update": None}})
        send({"jsonrpc": "2.0", "method": "session/update"})
        send({"jsonrpc": "2.0", "method": "_auth/status_update", "params": [1]})
        update("agent_message_chunk", session="somebody else", content={"type": "text", "text": "not ours"})
        answer(mid, {"stopReason": "end_turn"})
        update("session_info_update", title="late")
        answer(mid, {"stopReason": "cancelled"})
        text("late words")
    elif MODE == "tools":
        tools_any_order()
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "ids":
        got = [outcome(ask_permission({"toolCallId": "t%d" % i}, mid=i_)) for i, i_ in
               enumerate([0, "0", "text", -1])]
        text("|".join(got))
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "not-offered":
        replies = [ask("fs/write_text_file", {"path": "/x", "content": "y", "sessionId": SID}),
                   ask("terminal/create", {"command": "id", "sessionId": SID}),
                   ask("_kage/x", None), ask("elicitation/create", {})]
        text(",".join(str(r["error"]["code"]) for r in replies))
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "ask":
        text(outcome(ask_permission({"toolCallId": "t", "title": "Run", "kind": "execute", "status": "pending"})))
        answer(mid, {"stopReason": "cancelled" if state["cancelled"].is_set() else "end_turn"})
    elif MODE == "ask-nothing":
        text(outcome(ask_permission({"toolCallId": "t", "title": "Run"}, options=[])))
        text(outcome(ask_permission(None, options=[None, {}, {"optionId": "x"}, {"optionId": "x", "name": "twice"}])))
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "ask-child":
        text(outcome(ask_permission({"toolCallId": "t", "title": "Child"}, session="child")))
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "withdraw":
        event = threading.Event()
        state["waiting"]["\"q\""] = [event, None]
        send({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission",
              "params": {"sessionId": SID, "toolCall": {"toolCallId": "t"}, "options": OPTIONS}})
        time.sleep(0.05)
        send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "q"}})
        event.wait()
        text(outcome(state["waiting"].pop("\"q\"")[1]))
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "cancel":
        update("tool_call", toolCallId="open", title="Sleep", status="in_progress")
        reply = ask_permission({"toolCallId": "asked", "title": "Run"})
        state["cancelled"].wait()
        text(outcome(reply))
        late = ask_permission({"toolCallId": "late", "title": "Late"})
        text(outcome(late))
        answer(mid, {"stopReason": "end_turn"})
        answer(mid, {"stopReason": "cancelled"})
    elif MODE == "cancel-error":
        state["cancelled"].wait()
        fail(mid, -32603, "Internal error", {"details": "aborted"})
    elif MODE == "cancel-early":
        started = time.monotonic()
        state["cancelled"].wait()
        text("held %d" % (time.monotonic() - started >= 0.2))
        answer(mid, {"stopReason": "cancelled"})
    elif MODE == "ignores-cancel":
        text("working")
        state["cancelled"].wait()
        time.sleep(1)
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "errors":
        errors = [(401, "no", ["a", "b"]), (-32603, "Internal error", {"details": "429 slow down"}),
                  (-32603, "Internal error", "plain data"), (500, None, {"message": "terminated"}),
                  (-32000, "Authentication required", None), (7, None, None)]
        if n <= len(errors):
            fail(mid, *errors[n - 1])
        elif n == len(errors) + 1:
            send({"jsonrpc": "2.0", "id": mid, "error": "just text"})
        elif n == len(errors) + 2:
            answer(mid, {"stopReason": "error"})
        elif n == len(errors) + 3:
            answer(mid, {"stopReason": None})
        else:
            answer(mid, [])
    elif MODE == "dies":
        text("last words")
        sys.stderr.write("first line\npanic: out of luck\n")
        sys.stderr.flush()
        os._exit(7)
    elif MODE == "closes-stdout":
        text("last words")
        os.close(1)
        time.sleep(3600)
    elif MODE == "leaves-child":
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        os._exit(1)
    elif MODE == "big":
        size = int(os.environ.get("AGENT_BYTES", "3000000"))
        text("x" * size)
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "growing":
        # One command's output told again and again, longer each time, as terminals do it: 35,000 lines, 280 KB a time.
        lines = ["%05d \u2028 \x1b[31mred\x1b[0m %s" % (i, "z" * 8) for i in range(35000)]
        update("tool_call", toolCallId="t", title="Build", kind="execute", status="in_progress")
        for end in range(100, 35001, 100):
            out = "\n".join(lines[:end])[-280000:]
            update("tool_call_update", toolCallId="t", content=[{"type": "content", "content": {"type": "text", "text": out}}])
        for i in range(6000):
            update("tool_call", toolCallId="call-%d" % i, title="T" * 3000, status="in_progress",
                   rawInput={"text": "y" * 5000}, content=[{"type": "diff", "path": "/f", "oldText": "o" * 9000,
                                                            "newText": "n" * 9000}])
        update("tool_call_update", toolCallId="t", status="completed")
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "steer":
        if params.get("delivery") == "steer":
            text("steered")
            answer(mid, {"stopReason": "end_turn"})
            answer(state["steered"], {"stopReason": "end_turn"})
        else:
            state["steered"] = mid
            text("go")
    elif MODE == "nothing":
        answer(mid, {"stopReason": "end_turn"})
    elif MODE == "cancelled-call":
        pass
    else:
        text("ok")
        answer(mid, {"stopReason": "end_turn"})


def handle(message):
    method = message.get("method")
    mid = message.get("id")
    params = message.get("params") or {}
    if method is None:
        waiting = state["waiting"].get(json.dumps(mid))
        if waiting:
            waiting[1] = message
            waiting[0].set()
    elif method == "initialize":
        assert params["protocolVersion"] == 1 and params["clientCapabilities"]["terminal"] is False
        initialize(mid)
    elif method == "session/new":
        assert params["mcpServers"] == [] and os.path.isabs(params["cwd"])
        new_session(mid)
    elif method in ("session/load", "session/resume"):
        load_session(mid, params)
    elif method == "session/prompt":
        threading.Thread(target=prompt, args=(mid, params), daemon=True).start()
    elif method == "session/cancel":
        state["cancelled"].set()
    elif method == "session/set_config_option":
        if MODE == "config":
            answer(mid, {"configOptions": [{"id": params["configId"], "category": "model", "type": "select",
                                            "currentValue": params["value"], "options": []}]})
    elif method == "session/set_model" or method == "session/set_mode":
        answer(mid, {})
    elif method == "$/cancel_request":
        sys.stderr.write("given up: %s\n" % json.dumps(params["requestId"]))
        sys.stderr.flush()
    elif mid is not None:
        fail(mid, -32601, "Method not found")


def main():
    if MODE == "ignores-eof":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "banner":
        raw(b"welcome to the shell\n$ ")
    for line in sys.stdin.buffer:
        handle(json.loads(line))
    if MODE == "ignores-eof":
        time.sleep(3600)
    os._exit(0)


main()
