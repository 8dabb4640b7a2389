# SPDX-License-Identifier: MIT
"""A hostile guest: first the agent's account, then the guest's root, against what SECURITY.md promises."""

import base64
import json
import os
import time
import unittest

import harness
from harness import Try, allow

# Runs as the agent. Each line of its output is one attempt and what came of it.
AGENT = r"""
import ctypes, errno, os, socket

libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, action):
    try:
        print(name, "done", action())
    except OSError as error:
        print(name, errno.errorcode.get(error.errno, error.errno))

def call(number, *arguments):
    if libc.syscall(ctypes.c_long(number), *arguments) < 0:
        raise OSError(ctypes.get_errno(), "")

def listen(family, address):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind((address, PORT))
    s.listen(1)

def ask(request):
    s = socket.create_connection(("127.0.0.1", PORT), 5)
    s.settimeout(10)
    s.sendall(request.encode("latin-1"))
    return s.recv(64).decode("latin-1").split(" ")[1]

PORT = 47129
attempt("port-v4", lambda: listen(socket.AF_INET, "127.0.0.1"))
attempt("port-any", lambda: listen(socket.AF_INET, "0.0.0.0"))
attempt("port-mapped", lambda: listen(socket.AF_INET6, "::ffff:127.0.0.1"))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("keyctl", lambda: call(250, 0, -3, 0))
attempt("add-key", lambda: call(248, b"user", b"a", b"b", 1, -3))
attempt("io-uring", lambda: call(425, 8, ctypes.create_string_buffer(256)))
attempt("kill-init", lambda: os.kill(1, 9))
attempt("init-root", lambda: os.listdir("/proc/1/root"))
attempt("lease", lambda: socket.socket(socket.AF_UNIX).connect("/run/errand/lease.sock"))
attempt("lease-dir", lambda: os.listdir("/run/errand"))
slow = []
for i in range(500):
    slow.append(socket.create_connection(("127.0.0.1", PORT), 5))
    slow[-1].sendall(b"GET / HT")
for host in ("127.0.0.1:22", "[::1]:22", "169.254.169.254:80", "0.0.0.0:80", "2130706433:80", "0x7f000001:80", "127.1:80",
             "[::ffff:7f00:1]:22", "[64:ff9b::7f00:1]:22", "localhost.:22", "a@127.0.0.1:22", "127.0.0.1:47130"):
    print("connect", host, ask(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
key = os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN")
for path in ("../../x", "%2e%2E/x", "%2e%2e%2fx", "..;/x", "%2e%2e;a=b/x", "v1/x%0d%0aX:1", "\\..\\x"):
    print("path", path, ask(f"GET /provider/anthropic/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {key}\r\n\r\n"))
"""

# Runs as the guest's root: what the host meets when it resumes, measures and deletes.
ROOT = """for d in /state /workspace; do cd $d; mkdir -p theirs/x; echo hi > theirs/x/f; chmod 0 theirs; ln -s /etc etc
ln -s %(canary)s canary; mkfifo fifo; cp /bin/true suid; chmod 4755 suid; python3 -c '
import os
for i in range(300):
    os.mkdir("d" * 200); os.chdir("d" * 200)'
done; chmod 0 /state; echo planted"""


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config(memory="1GiB", pids=256, disk="3GiB", tmp="64MiB")

    def test_agent_finds_every_door_closed(self):
        script = base64.b64encode(AGENT.encode()).decode()
        run = Try(self.world, f"@mock shell echo {script} | base64 -d | python3 - > /workspace/out.txt 2>&1", "--agent",
                  "claude-agent-acp", "--project", "doors", answer=allow).wait()
        self.assertEqual(run.code, 0, run.describe())
        out = (self.world.project("doors") / "out.txt").read_text(errors="replace")
        seen = dict(line.rsplit(" ", 1) for line in out.splitlines() if " " in line)
        expected = {"port-v4": "EADDRINUSE", "port-any": "EADDRINUSE", "port-mapped": "EADDRINUSE",
                    "vsock": "EAFNOSUPPORT", "keyctl": "ENOSYS", "add-key": "ENOSYS", "io-uring": "ENOSYS",
                    "kill-init": "EPERM", "init-root": "EACCES", "lease": "EACCES", "lease-dir": "EACCES"}
        for name, verdict in expected.items():
            self.assertEqual(seen.get(name), verdict, out)
        answers = {name: code for name, code in seen.items() if name.startswith(("connect ", "path "))}
        self.assertEqual(len(answers), 19, out)
        for name, code in answers.items():
            self.assertIn(code, ("403", "400") if name.startswith("connect ") else ("400",), out)

    def test_what_guest_root_plants_is_deleted_and_not_followed(self):
        canary = os.path.join(self.world.dir, "canary")
        os.mkdir(canary, 0o777)
        os.chmod(canary, 0o777)
        with open(os.path.join(canary, "file"), "w", encoding="utf-8") as file:
            file.write("untouched")
        etc = os.stat("/etc").st_mode
        planted = {}

        def plant(_run, event):
            if event["event"] != "tool" or planted or event.get("status") not in ("in_progress", "pending"):
                return
            info = self.world.incus("GET", "/1.0/instances?all-projects=true&recursion=1")["metadata"][0]
            body = json.dumps({"command": ["/bin/sh", "-c", ROOT % {"canary": canary}], "record-output": True,
                               "wait-for-websocket": False, "interactive": False, "user": 0, "group": 0})
            answer = self.world.incus("POST", f"/1.0/instances/{info['name']}/exec?project={info['project']}", body)
            done = self.world.incus("GET", f"/1.0/operations/{answer['metadata']['id']}/wait?timeout=60")
            output = done["metadata"]["metadata"]["output"]
            planted["out"] = self.world.incus_raw("GET", output["1"] + f"?project={info['project']}")

        run = Try(self.world, "@mock shell sleep 8", "--agent", "claude-agent-acp", "--project", "planted", answer=allow,
                  before_event=plant).wait()
        self.assertIn("planted", planted.get("out", ""), run.describe())
        self.assertIsNotNone(run.end, run.describe())
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())
        began = time.monotonic()
        pruned = self.world.run("sessions", "prune", timeout=60)
        self.assertEqual(pruned.returncode, 0, pruned.stderr)
        self.assertNotIn(" planted ", self.world.run("sessions", "list").stdout, f"{time.monotonic() - began:.1f} s")
        with open(os.path.join(canary, "file"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "untouched")
        self.assertEqual(os.stat("/etc").st_mode, etc)
