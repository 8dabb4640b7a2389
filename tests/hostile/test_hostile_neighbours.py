# SPDX-License-Identifier: MIT
"""A hostile agent against other sessions, the service and the operator's terminal, from inside a real guest."""

import os
import pwd
import subprocess
import threading
import unittest

import harness
from harness import EB, Try, allow

# Descriptors in flight count for the account, and guest uid 1000 is the service's account.
FLOOD = """
import os, resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
pack, keep = [os.open("/dev/null", os.O_RDONLY)] * 253, []
try:
    while len(keep) < 2000:
        a, b = socket.socketpair()
        a.setblocking(False)
        keep.append((a, b))
        try:
            while True:
                socket.send_fds(a, [b"x"], pack)
        except BlockingIOError:
            pass
except OSError as error:
    print("full", error.errno, flush=True)
until = time.monotonic() + 60
while time.monotonic() < until and not os.path.exists("/workspace/enough"):
    time.sleep(0.1)
"""

BROKER = """
import resource, socket
RELAY = ("127.0.0.1", 47129)
def ask(head, patience=20):
    with socket.socket() as s:
        s.settimeout(patience)
        s.connect(RELAY)
        s.sendall(head)
        return s.recv(4096).split(b"\\r\\n")[0].decode()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
slow = []
for n in range(2000):
    s = socket.socket(socket.AF_UNIX) if n % 2 else socket.socket()
    s.setblocking(False)
    try:
        s.connect("/opt/errand/run/model.sock" if n % 2 else RELAY)
    except BlockingIOError:
        pass
    slow.append(s)
for s in slow:
    try:
        s.send(b"GET /provider/x")
    except OSError:
        pass
print("beside", ask(b"GET /provider/anthropic/ HTTP/1.1\\r\\nHost: 127.0.0.1:47129\\r\\nConnection: close\\r\\n\\r\\n"))
"""

# An ACP agent that says the same bad text wherever the protocol has room for one.
AGENT = r"""
import json, sys
BAD = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\u2066evil\r\x08\x7f\u200b"
def send(message):
    print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
def update(**fields):
    send({"method": "session/update", "params": {"sessionId": "s", "update": fields}})
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {},
                                              "agentInfo": {"name": BAD, "version": BAD}}})
    elif method == "session/new":
        send({"id": message["id"], "result": {"sessionId": "s"}})
    elif method == "session/prompt":
        print(BAD, "noise", flush=True)
        print(BAD, file=sys.stderr, flush=True)
        text = {"type": "text", "text": BAD}
        update(sessionUpdate="agent_message_chunk", content=text)
        update(sessionUpdate="agent_thought_chunk", content=text)
        update(sessionUpdate="tool_call", toolCallId=BAD, title=BAD, kind="execute", status="pending",
               rawInput={"command": BAD}, locations=[{"path": BAD}],
               content=[{"type": "diff", "path": BAD, "oldText": BAD, "newText": BAD + "x"}])
        update(sessionUpdate="plan", entries=[{"content": BAD, "priority": "high", "status": "pending"}])
        for n in range(2000):
            send({"id": f"{BAD}{n}", "method": "session/request_permission",
                  "params": {"sessionId": "s" if n % 2 else "other", "toolCall": {"toolCallId": BAD, "title": BAD},
                             "options": [{"optionId": BAD, "name": BAD, "kind": "allow_once"}]}})
        send({"id": message["id"], "result": {"stopReason": "end_turn"}})
"""


class Neighbours(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config(memory="1GiB", pids=256, disk="3GiB", tmp="64MiB")

    def place(self, project, name, text):
        """A file in a project before its guest exists."""
        owner, path = pwd.getpwnam("errand"), self.world.project(project)
        if not path.exists():
            path.mkdir(mode=0o700)
            os.chown(path, owner.pw_uid, owner.pw_gid)
        (path / name).write_text(text)
        os.chown(path / name, owner.pw_uid, owner.pw_gid)
        return path

    def start(self, project, command):
        return Try(self.world, f"@mock shell {command} > /workspace/out.txt 2>&1", "--agent", "claude-agent-acp",
                   "--project", project, answer=allow)

    def output(self, project, name, program, *arguments):
        path = self.place(project, name, program)
        run = self.start(project, f"python3 /workspace/{name} {' '.join(arguments)}").wait()
        self.assertEqual(run.code, 0, run.describe())
        return (path / "out.txt").read_text(errors="replace")

    def test_descriptors_in_flight_keep_no_other_session_from_starting(self):
        path = self.place("inflight", "flood.py", FLOOD)
        run = self.start("inflight", "python3 /workspace/flood.py")
        waiting = threading.Thread(target=run.wait)
        waiting.start()
        out = path / "out.txt"
        try:
            full = harness.wait_until(lambda: out.exists() and "full" in out.read_text(), 60)
            self.assertTrue(full, run.describe())
            other = Try(self.world, "@mock say hello", "--agent", "claude-agent-acp", "--project", "beside").wait()
            self.assertEqual(other.code, 0, other.describe())
        finally:
            (path / "enough").touch()
            waiting.join()

    def test_broker_outlives_slow_clients(self):
        out = self.output("reach", "reach.py", BROKER)
        self.assertRegex(out, "beside HTTP/1.1 200 ")

    def test_project_its_agent_has_closed_opens_again(self):
        run = self.start("closed", "chmod 0 /workspace /state").wait()
        self.assertEqual(run.code, 0, run.describe())
        run = Try(self.world, "@mock say open", "--agent", "claude-agent-acp", "--project", "closed").wait()
        self.assertEqual(run.code, 0, run.describe())

    def test_nothing_an_agent_says_drives_the_terminal(self):
        self.place("bad-text", "agent.py", AGENT)
        self.world.write_config(memory="1GiB", extra='[agent.generic]\ncommand = ["/usr/bin/python3", "/workspace/agent.py"]\n'
                                                     'model_via = "env"\n')
        self.addCleanup(self.setUpClass)
        run = subprocess.run([EB, "--config", self.world.config, "try", "--agent", "generic", "--project", "bad-text", "go"],
                             env=self.world.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.STEP,
                             check=False)
        self.assertEqual(run.returncode, 0, run.stderr[-2000:])
        shown = (run.stdout + run.stderr).decode()
        self.assertIn("evil", shown)
        for bad in "\x1b\x07\x08\x7f\x9b\r\u202e\u2066\u200b":
            self.assertNotIn(bad, shown, shown[-2000:])
