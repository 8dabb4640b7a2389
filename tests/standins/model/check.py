#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The model stand-in as the agents' libraries see it: check.py PROGRAM. Speaks TAP."""

import http.client
import json
import os
import subprocess
import sys
import tempfile

KEY = "k-123"
TOOLS = [("write", {"type": "object", "required": ["filePath", "content"],
                    "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}}),
         ("bash", {"type": "object", "required": ["command", "description"],
                   "properties": {"command": {"type": "string"}, "description": {"type": "string"}}})]
SCRIPT = "@mock think hm\n@mock write a.txt one\\ntwo\n@mock say between\n@mock shell cat a.txt\n@mock say end"


class Standin:
    def __init__(self, program):
        self.dir = tempfile.TemporaryDirectory()
        self.log = os.path.join(self.dir.name, "log")
        read, write = os.pipe()
        os.write(write, KEY.encode() + b"\n")
        os.close(write)
        self.process = subprocess.Popen([program, "--key-fd", str(read), "--log", self.log, "--root", "/w",
                                         "--until-eof"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[read])
        os.close(read)
        self.port = json.loads(self.process.stdout.readline())["port"]

    def ask(self, path, body, headers, method="POST"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read()

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=20)


def events(data):
    found = []
    for block in data.decode().split("\n\n"):
        for line in block.split("\n"):
            if line.startswith("data: ") and line != "data: [DONE]":
                found.append(json.loads(line[6:]))
    return found


class OpenAi:
    path, headers = "/v1/chat/completions", {"authorization": "Bearer " + KEY}
    bad = {"authorization": "Bearer no"}

    def body(self, messages):
        return {"model": "m", "stream": True, "messages": messages,
                "tools": [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in TOOLS]}

    def user(self, text):
        return {"role": "user", "content": text}

    def result(self, messages, call, text):
        messages.append({"role": "assistant", "tool_calls": []})
        messages.append({"role": "tool", "tool_call_id": "x", "content": text})

    def read(self, data):
        text, call = "", None
        for event in events(data):
            for choice in event["choices"]:
                text += choice["delta"].get("content") or ""
                for tool in choice["delta"].get("tool_calls", []):
                    call = (tool["function"]["name"], json.loads(tool["function"]["arguments"]))
        return text, call


class Responses(OpenAi):
    path = "/v1/responses"

    def body(self, messages):
        return {"model": "m", "stream": True, "input": messages,
                "tools": [{"type": "function", "name": n, "parameters": s} for n, s in TOOLS]}

    def user(self, text):
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def result(self, messages, call, text):
        messages.append({"type": "function_call_output", "call_id": "x", "output": text})

    def read(self, data):
        text, call = "", None
        found = events(data)
        assert found[0]["type"] == "response.created" and found[-1]["type"] == "response.completed"
        for event in found:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            if event["type"] == "response.output_item.done" and event["item"]["type"] == "function_call":
                call = (event["item"]["name"], json.loads(event["item"]["arguments"]))
        return text, call


class Anthropic:
    path = "/v1/messages?beta=true"
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    bad = {"x-api-key": "no", "anthropic-version": "2023-06-01"}

    def body(self, messages):
        return {"model": "m", "stream": True, "max_tokens": 9, "messages": messages,
                "tools": [{"name": n, "input_schema": s} for n, s in TOOLS]}

    def user(self, text):
        return {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"},
                                            {"type": "text", "text": text}]}

    def result(self, messages, call, text):
        messages.append({"role": "assistant", "content": []})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": text},
                                                     {"type": "text", "text": "<system-reminder>y</system-reminder>"}]})

    def read(self, data):
        text, call = "", None
        for event in events(data):
            if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
                call = event["content_block"]["name"]
            if event["type"] == "content_block_delta":
                delta = event["delta"]
                text += delta.get("text", "")
                if delta["type"] == "input_json_delta":
                    call = (call, json.loads(delta["partial_json"]))
        return text, call


class Gemini:
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    headers, bad = {"x-goog-api-key": KEY}, {"x-goog-api-key": "no"}

    def body(self, messages):
        return {"contents": messages,
                "tools": [{"functionDeclarations": [{"name": n, "parameters": s} for n, s in TOOLS]}]}

    def user(self, text):
        return {"role": "user", "parts": [{"text": text}]}

    def result(self, messages, call, text):
        messages.append({"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {"output": text}}}]})

    def read(self, data):
        text, call = "", None
        for event in events(data):
            for part in event["candidates"][0]["content"]["parts"]:
                if "functionCall" in part:
                    call = (part["functionCall"]["name"], part["functionCall"]["args"])
                elif not part.get("thought"):
                    text += part["text"]
        return text, call


def run_dialect(standin, dialect):
    messages = [dialect.user(SCRIPT)]
    said = []
    for _ in range(3):
        status, data = standin.ask(dialect.path, dialect.body(messages), dialect.headers)
        assert status == 200, (status, data)
        text, call = dialect.read(data)
        said.append((text, call))
        if call:
            dialect.result(messages, call, "done")
    assert said[0] == ("", ("write", {"filePath": "/w/a.txt", "content": "one\ntwo"})), said[0]
    assert said[1][0] == "between" and said[1][1][0] == "bash", said[1]
    assert said[1][1][1]["command"] == "cat a.txt" and said[1][1][1]["description"], said[1]
    assert said[2] == ("end", None), said[2]
    # A second prompt starts its own script.
    messages.append(dialect.user("@mock say again"))
    assert dialect.read(standin.ask(dialect.path, dialect.body(messages), dialect.headers)[1]) == ("again", None)


def run_refusals(standin, dialect):
    good = dialect.body([dialect.user("@mock say x")])
    nothing = {k: v for k, v in dialect.headers.items() if k == "anthropic-version"}
    refused = (400, 401, 403)
    for headers in (dialect.bad, nothing):
        status, data = standin.ask(dialect.path, good, headers)
        assert status in refused and "error" in json.loads(data), (status, data)
    assert standin.ask(dialect.path, b"{broken", dialect.headers)[0] == 400
    assert standin.ask(dialect.path, {}, dialect.headers)[0] == 400
    assert standin.ask(dialect.path, good, {**dialect.headers, "content-type": "text/plain"})[0] == 415
    assert standin.ask(dialect.path, None, dialect.headers, "GET")[0] == 405
    for code in (429, 401, 500):
        status, data = standin.ask(dialect.path, dialect.body([dialect.user("@mock status %d" % code)]),
                                   dialect.headers)
        assert status == code and "error" in json.loads(data), (status, data)


def run_misc(standin):
    assert standin.ask("/", None, {}, "HEAD")[0] == 200
    assert standin.ask("/v1/nothing", {}, OpenAi.headers)[0] == 404
    status, data = standin.ask("/v1/messages/count_tokens", Anthropic().body([Anthropic().user("x")]),
                               Anthropic.headers)
    assert status == 200 and json.loads(data)["input_tokens"] > 0
    status, data = standin.ask("/v1/chat/completions",
                               {"model": "m", "messages": [{"role": "user", "content": "@mock say whole"}]},
                               OpenAi.headers)
    assert json.loads(data)["choices"][0]["message"]["content"] == "whole"
    big = OpenAi().body([OpenAi().user("@mock big 1000000")])
    assert len(OpenAi().read(standin.ask(OpenAi.path, big, OpenAi.headers)[1])[0]) == 1000000
    try:
        standin.ask(OpenAi.path, OpenAi().body([OpenAi().user("@mock cut\n@mock say a b c")]), OpenAi.headers)
        raise AssertionError("the stream was not cut")
    except (http.client.IncompleteRead, ConnectionError):
        pass


def run_log(standin):
    with open(standin.log, encoding="utf-8") as log:
        text = log.read()
    rows = [json.loads(line) for line in text.splitlines()]
    assert KEY not in text
    assert {"openai", "openai-responses", "anthropic", "gemini"} <= {row["kind"] for row in rows}
    assert any(row["key_ok"] is False and row["status"] == 401 for row in rows)
    assert any(row["auth_header"] == "x-goog-api-key" and row["key_ok"] for row in rows)
    assert any(row["users"] == [SCRIPT[:200], "@mock say again"] for row in rows)


def main():
    standin = Standin(sys.argv[1])
    steps = []
    for dialect in (OpenAi(), Responses(), Anthropic(), Gemini()):
        steps.append((type(dialect).__name__ + " script", lambda d=dialect: run_dialect(standin, d)))
        steps.append((type(dialect).__name__ + " refusals", lambda d=dialect: run_refusals(standin, d)))
    steps += [("misc", lambda: run_misc(standin)), ("log", lambda: run_log(standin)),
              ("end", lambda: (lambda code: code == 0 or sys.exit(code))(standin.close()))]
    print("1..%d" % len(steps))
    failed = 0
    for number, (name, step) in enumerate(steps, 1):
        try:
            step()
            print("ok %d - %s" % (number, name))
        except Exception as problem:  # every failure is a test's
            failed += 1
            print("not ok %d - %s\n# %r" % (number, name, problem))
    return 1 if failed else 0


sys.exit(main())
