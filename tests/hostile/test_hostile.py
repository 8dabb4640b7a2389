# SPDX-License-Identifier: MIT
"""The attack program in a real guest, as the agent and as the guest's root, beside a neighbour's session: every row refused.

Each row of the program becomes a point of the TAP output. What must not have happened is looked at from the host as well: no
question at the name server, no connection at the host's listeners, no request at the provider, nothing changed that a link
of the guest's points to."""

import json
import os
import pwd
import re
import secrets
import shutil
import socket
import subprocess
import threading
import unittest

import harness
from harness import BUILD, Try, allow
from name_server import NameServer

NAMES = "127.0.0.77"
IPC = 0x0EB0517A
# Fewer rows than these mean that the program ended early, or that rows were lost on the way.
LEAST = {"agent": 430, "root": 400}


def host_address():
    """An address of this host that is not loopback, or ""."""
    out = subprocess.run(["ip", "-o", "-4", "addr", "show", "scope", "global"], capture_output=True, text=True, check=False)
    match = re.search(r"inet (\d+\.\d+\.\d+\.\d+)/", out.stdout)
    return match.group(1) if match else ""


class Listener:
    """Counts who comes to the host's own sockets: TCP on every address, and an abstract unix socket."""

    def __init__(self, abstract):
        self.visitors = 0
        self.tcp = socket.socket()
        self.tcp.bind(("0.0.0.0", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind("\0" + abstract)
        self.port = self.tcp.getsockname()[1]
        for opened in (self.tcp, self.unix):
            opened.listen(16)
            threading.Thread(target=self._count, args=(opened,), daemon=True).start()

    def _count(self, opened):
        while True:
            try:
                opened.accept()[0].close()
            except OSError:
                return
            self.visitors += 1

    def close(self):
        self.tcp.close()
        self.unix.close()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config(memory="1GiB", pids=256, disk="3GiB", tmp="64MiB",
                               extra='[egress]\nallow = ["allowed.test", "*.allowed.test"]\nports = [443, 80]\n')
        cls.rows, cls.word = [], "eb-hostile-" + secrets.token_hex(6)
        cls.names, cls.listener = NameServer(NAMES), Listener(cls.word)
        cls.resolv = os.path.join(cls.world.dir, "resolv.conf")
        with open(cls.resolv, "w", encoding="utf-8") as file:
            file.write(f"nameserver {NAMES}\noptions timeout:1 attempts:1\n")
        cls.canary = os.path.join(cls.world.dir, "hostile-canary")
        os.mkdir(cls.canary)
        os.chmod(cls.canary, 0o777)
        with open(os.path.join(cls.canary, "file"), "w", encoding="utf-8") as file:
            file.write("untouched")
        os.chmod(os.path.join(cls.canary, "file"), 0o666)
        # The host's own, which no guest may see under the same key.
        subprocess.run([str(BUILD / "tests/hostile/attack"), "listen", f"abstract={cls.word}-host", f"ipc={IPC}"],
                       stdin=subprocess.DEVNULL, check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.names.close()
        cls.listener.close()
        for flag in ("-M", "-S", "-Q"):
            subprocess.run(["ipcrm", flag, hex(IPC)], check=False, capture_output=True)

    def place(self, project):
        """The attack program in a project, before its guest exists."""
        owner, path = pwd.getpwnam("errand"), self.world.project(project)
        if not path.exists():
            path.mkdir(mode=0o700)
            os.chown(path, owner.pw_uid, owner.pw_gid)
        shutil.copy(BUILD / "tests/hostile/attack", path / "attack")
        os.chown(path / "attack", owner.pw_uid, owner.pw_gid)
        os.chmod(path / "attack", 0o755)
        return path

    def session(self, project, command):
        """A session whose shell runs @command and then stays until the file "enough" appears; its name servers are ours."""
        path = self.place(project)
        (path / "part.sh").write_text(f"cd /workspace\n{command}\nwhile [ ! -e enough ]; do sleep 0.1; done\n")
        confine = ["unshare", "--mount", "sh", "-c", f'mount --bind {self.resolv} /etc/resolv.conf && exec "$@"', "sh"]
        run = Try(self.world, "@mock shell sh /workspace/part.sh", "--agent", "claude-agent-acp", "--project", project, answer=allow,
                  prefix=confine)
        waiting = threading.Thread(target=run.wait)
        waiting.start()

        def end():
            (path / "enough").touch()
            waiting.join()
            self.assertEqual(run.code, 0, run.describe())

        self.addCleanup(end)
        return path, run

    def wait_for(self, path, text, run):
        there = harness.wait_until(lambda: path.exists() and text in path.read_text(errors="replace"), 120)
        self.assertTrue(there, (path.read_text(errors="replace")[-2000:] if path.exists() else "") + run.describe())
        return path.read_text(errors="replace")

    def as_root(self, project, command):
        """A command of the guest's root in the guest that has @project mounted."""
        info = next(entry for entry in self.world.incus("GET", "/1.0/instances?all-projects=true&recursion=1")["metadata"]
                    if any(str(self.world.project(project)) == device.get("source")
                           for device in entry["expanded_devices"].values()))
        where = f"?project={info['project']}"
        body = json.dumps({"command": ["/bin/sh", "-c", command], "record-output": True, "wait-for-websocket": False,
                           "interactive": False, "user": 0, "group": 0})
        answer = self.world.incus("POST", f"/1.0/instances/{info['name']}/exec{where}", body)
        done = self.world.incus("GET", f"/1.0/operations/{answer['metadata']['id']}/wait?timeout=120")
        return self.world.incus_raw("GET", done["metadata"]["metadata"]["output"]["1"] + where)

    def arguments(self, neighbour, nonce):
        """What an attacker could know at worst: names of the host and of the neighbour."""
        run_dirs = [os.path.dirname(path) for path in self.world.sockets()]
        broker = self.world.brokers()
        self.assertGreaterEqual(len(run_dirs), 2)
        self.assertGreaterEqual(len(broker), 2)
        return " ".join([
            f"abstract={self.word}", f"ipc={IPC}", f"broker={broker[0]}", f"host={host_address()}",
            f"port={self.listener.port}", f"model={self.world.model.port}", f"names={NAMES}", f"nonce={nonce}",
            f"canary={self.canary}", f"state={self.world.state}", f"creds={self.world.creds}",
            f"incus={self.world.incus_dir}/unix.socket", f"neighbour=../{neighbour}/nonce",
            f"neighbour-run={run_dirs[0]}", f"neighbour-socket={run_dirs[0]}/model.sock",
            f"neighbour-state={os.path.dirname(run_dirs[0])}"])

    def judge(self, who, out):
        rows = [line.split(" ", 2) for line in out.splitlines() if line.startswith(("refused ", "NOT ", "odd "))]
        for verdict, name, *why in rows:
            self.rows.append((f"{who} {name}: {verdict} {' '.join(why)}", verdict == "refused"))
        self.assertEqual(out.splitlines()[-1], "done", out[-2000:])
        self.assertGreaterEqual(len(rows), LEAST[who], out)
        self.assertEqual([row for row in rows if row[0] != "refused"], [])

    def test_every_row_is_refused(self):
        path, run = self.session("neighbour", 'printenv ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN | head -1 > nonce;'
                                 f"\n(sleep 600 | ./attack listen abstract={self.word} ipc={IPC}) > listening 2>&1 &")
        self.wait_for(path / "listening", "listening", run)
        nonce = (path / "nonce").read_text().strip()
        self.assertGreater(len(nonce), 20)
        attacker, attacking = self.session("attacker", "while [ ! -e go ]; do sleep 0.1; done\nsh ./go > agent.txt 2>&1")
        self.assertTrue(harness.wait_until(lambda: len(self.world.sockets()) >= 2 and len(self.world.brokers()) >= 2, 60))
        arguments = self.arguments("neighbour", nonce)
        asked, seen = len(self.names.questions), len(self.world.model.requests())
        (attacker / "go.new").write_text(f"./attack kernel files network broker {arguments}\n")
        os.rename(attacker / "go.new", attacker / "go")
        self.judge("agent", self.wait_for(attacker / "agent.txt", "\ndone", attacking))
        self.judge("root", self.as_root("attacker", f"cd /workspace && ./attack kernel files network broker {arguments} 2>&1"))
        # Seen from the host.
        questions = self.names.questions[asked:]
        self.assertIn("loopback.allowed.test", questions)  # the broker does ask this server
        self.assertEqual([name for name in questions if not name.endswith(".allowed.test") or "leaked" in name], [])
        self.assertEqual(self.listener.visitors, 0)
        self.assertEqual([row for row in self.world.model.requests()[seen:] if "stolen" in json.dumps(row)], [])
        # The neighbour is none the worse.
        self.assertEqual(len(self.world.sockets()), 2)
        self.assertEqual(len(self.world.brokers()), 2)
        self.assertIsNone(run.process.poll())
        # What both planted is met by the host when it lists, measures and deletes.
        etc = os.stat("/etc")
        self.doCleanups()
        for command in (("sessions", "list"), ("sessions", "prune")):
            result = self.world.run(*command, timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.canary, "file"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "untouched")
        self.assertEqual(os.listdir(self.canary), ["file"])
        self.assertEqual((os.stat("/etc").st_mode, os.stat("/etc").st_uid), (etc.st_mode, etc.st_uid))
