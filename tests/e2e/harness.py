# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: a private incusd prepared by `errand-box setup`, the model stand-in, and
`errand-box try --json` with scripted answers. Nothing here reaches into the product: it is driven as a user would."""

import json
import os
import pathlib
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ.get("EB_BUILD", "build")).resolve()
EB = str(BUILD / "errand-box")
# Longest wait for one step; a hang fails the test instead of the whole run.
STEP = 180


# What an alarm says, in the log and to people, when the key that is planted in every guest shows up outside of it.
ALARM = "planted key showed up"


def skip_reason():
    """Why these tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root: incusd, accounts and mounts"
    if not os.path.exists("/usr/libexec/incus/incusd"):
        return "incusd is not installed"
    return None


class Standin:
    """The model provider stand-in on loopback, with a key only the broker should know."""

    def __init__(self, directory):
        self.key = "sk-e2e-" + secrets.token_urlsafe(24)
        self.log = os.path.join(directory, "model.log")
        read, write = os.pipe()
        os.write(write, self.key.encode())
        os.close(write)
        self.process = subprocess.Popen(
            [str(BUILD / "tests/standins/model/eb-model-standin"), "--key-fd", str(read), "--log", self.log],
            stdout=subprocess.PIPE, pass_fds=[read], text=True)
        os.close(read)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def requests(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.strip()]

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class World:
    """One prepared host: private incusd, project, pool, image, configuration, credentials."""

    def __init__(self, **session):
        self.dir = tempfile.mkdtemp(prefix="ebe-", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.incus_dir = os.path.join(self.dir, "i")
        self.state = os.path.join(self.dir, "s")
        self.projects = os.path.join(self.state, "home", "projects")
        self.config = os.path.join(self.dir, "errand-box.toml")
        self.creds = os.path.join(self.dir, "creds.env")
        self.chat_token = "mock-chat-" + secrets.token_urlsafe(24)
        self.model = Standin(self.dir)
        self.env = dict(os.environ, INCUS_DIR=self.incus_dir, INCUS_SKIP_INSTANCE_TYPES="true")
        with open(self.creds, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write(f"ERRAND_PROVIDER_CREDENTIAL={self.model.key}\nERRAND_CHAT_TOKEN={self.chat_token}\n")
        # What a host may lack before setup; the doctor says what it lacks afterwards.
        self.gaps, self.asked, self.written = ["E-05", "E-08", "E-17"], False, {}
        # Where an alarm belongs: logs by path, sessions by project; and what was raised in `try`.
        self.leaks, self.raised = set(), []
        self.write_config(**session)

    def write_config(self, accept=None, providers=("openai", "anthropic"), extra="", service=(), **session):
        self.written = dict(session, accept=accept, providers=providers, extra=extra, service=service)
        accept = self.gaps if accept is None else accept
        lines = ["[service]", f'state_dir = "{self.state}"', f'project_root = "{self.projects}"',
                 f"accept_degraded = {json.dumps(list(accept))}", *service, "[session]"]
        session.setdefault("agent", "opencode")
        session.setdefault("memory", "2GiB")
        session.setdefault("model", "mock-model")
        session.setdefault("canary", True)
        lines += [f"{key} = {json.dumps(value)}" for key, value in session.items()]
        for kind in providers:
            base = self.model.url + ("/v1" if kind == "openai" else "")
            lines += [f"[provider.{kind}]", f'kind = "{kind}"', f'base_url = "{base}"', 'key = "cred:model-key"']
        lines.append(extra)
        with open(self.config, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, 0o644)) as file:
            file.write("\n".join(lines) + "\n")

    def run(self, *args, timeout=STEP, **kwargs):
        return subprocess.run([EB, "--config", self.config, *args], env=self.env, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=timeout, check=False, **kwargs)

    def setup(self):
        result = self.run("setup", "--creds", self.creds, timeout=900)
        if result.returncode != 0:
            raise RuntimeError(f"setup: {result.returncode}\n{result.stdout}\n{result.stderr}")
        if not self.asked:
            self.asked = True
            self.gaps = self.degraded()
            self.write_config(**self.written)

    def degraded(self, *holds):
        """Ids of what this host cannot guarantee, as an operator learns them; @holds: those alone that hold from there."""
        report = json.loads(self.run("--json", "doctor").stdout)
        return [check["id"] for check in report["checks"]
                if check["status"] == "degraded" and (not holds or check["hold"] in holds)]

    def incus_raw(self, method, path, body=None):
        """The daemon's own view, past every layer of the product."""
        command = ["curl", "-sS", "--max-time", "150", "--unix-socket", self.incus_dir + "/unix.socket", "-X", method,
                   "http://incus" + path]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "--data-binary", body]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")

    def incus(self, method, path, body=None):
        return json.loads(self.incus_raw(method, path, body))

    def instances(self):
        answer = self.incus("GET", "/1.0/instances?all-projects=true&recursion=1")
        return [entry["name"] for entry in answer["metadata"]]

    def incusd_pid(self):
        return next(pid for pid, line in command_lines() if line.startswith("/usr/libexec/incus/incusd\0--group")
                    and f"INCUS_DIR={self.incus_dir}\0".encode() in environment(pid))

    def brokers(self):
        """Broker processes of this world: a service that was started with its configuration is their parent."""
        lines = dict(command_lines())
        return [pid for pid, line in lines.items()
                if "errand-box-broker" in line.split("\0")[0] and self.dir in lines.get(parent(pid), "")]

    def roots(self):
        """State roots, named and not searched for: what guests planted beside them is deeper than a path can say."""
        return [pathlib.Path(self.state), *pathlib.Path(self.state, "try").glob("*")]

    def sockets(self):
        return [str(path) for root in self.roots() for path in root.glob("sessions/*/run/model.sock")]

    def live_rows(self):
        """Sessions that some database of this world still calls alive."""
        rows = []
        for path in (root / "state.db" for root in self.roots() if (root / "state.db").exists()):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                rows += database.execute("SELECT id, state FROM session WHERE state NOT IN ('ended','idle')").fetchall()
        return rows

    def alarms(self):
        """Planted keys that showed up where no test wanted it, told once each."""
        found, self.raised = self.raised, []
        for path in pathlib.Path(self.dir).glob("*.log"):
            if str(path) not in self.leaks and ALARM in path.read_text(encoding="utf-8", errors="replace"):
                found.append(f"{path.name}: {ALARM}")
                self.leaks.add(str(path))
        for path in (root / "state.db" for root in self.roots() if (root / "state.db").exists()):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
                rows = database.execute("SELECT DISTINCT s.project FROM egress e JOIN session s ON s.id = e.session "
                                        "WHERE e.kind = 'canary'").fetchall()
            for (project,) in rows:
                if project not in self.leaks:
                    found.append(f"the audit of a session of {project}: {ALARM}")
                    self.leaks.add(project)
        return found

    def project(self, name):
        return pathlib.Path(self.projects, name)

    def close(self):
        self.run("setup", "--stop-daemons", timeout=120)
        self.model.stop()
        # Not by Python's recursion: guests plant trees deeper than that.
        subprocess.run(["rm", "-rf", self.dir], check=False)


_world = None


def world():
    """The one prepared host of this run; the first caller pays for it."""
    global _world
    if _world is None:
        reason = skip_reason()
        if reason:
            raise unittest.SkipTest(reason)
        candidate = World()
        try:
            candidate.setup()
        except BaseException:
            candidate.close()
            raise
        _world = candidate
    return _world


def alarms():
    """Of the world of this run, if there is one."""
    return _world.alarms() if _world is not None else []


def close_world():
    global _world
    if _world is not None:
        _world.close()
        _world = None


class Try:
    """`errand-box try --json`: events as they come, answers by a function of the permission event. @prefix: a command that
    runs it."""

    def __init__(self, world, prompt, *args, answer=None, before_event=None, prefix=()):
        self.world, self.events, self.answer, self.before_event = world, [], answer, before_event
        self.process = subprocess.Popen([*prefix, EB, "--config", world.config, "--json", "try", *args, prompt], env=world.env,
                                        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stderr_lines = []
        self._errors = threading.Thread(target=self._read_stderr, daemon=True)
        self._errors.start()

    def _read_stderr(self):
        for line in self.process.stderr:
            self.stderr_lines.append(line)

    def wait(self, timeout=STEP):
        killer = threading.Timer(timeout, self.process.kill)
        killer.start()
        try:
            for line in self.process.stdout:
                event = json.loads(line)
                self.events.append(event)
                if self.before_event:
                    self.before_event(self, event)
                if event["event"] == "permission" and self.answer and "options" in event:
                    option = self.answer(event)
                    if option:
                        self.process.stdin.write(json.dumps({"permission": event["id"], "option": option}) + "\n")
                        self.process.stdin.flush()
            self.process.wait(timeout)
        finally:
            killer.cancel()
        self._errors.join(5)
        self.world.raised += [line[:300] for line in [json.dumps(event) for event in self.events] + self.stderr_lines if ALARM in line]
        return self

    @property
    def stderr(self):
        return "".join(self.stderr_lines)

    @property
    def code(self):
        return self.process.returncode

    @property
    def end(self):
        ends = [event for event in self.events if event["event"] == "end"]
        return ends[-1] if ends else None

    def text(self):
        return "".join(event.get("text", "") for event in self.events if event["event"] == "text")

    def describe(self):
        return f"exit {self.code}\nstderr: {self.stderr}\nevents: " + "\n".join(json.dumps(e)[:300] for e in self.events[-40:])


def command_lines():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue


def all_command_lines():
    return "\n".join(line for _, line in command_lines())


def environment(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def unix_socket_paths(pid):
    by_inode = {}
    with open("/proc/net/unix", encoding="utf-8") as file:
        for line in file:
            fields = line.split()
            if len(fields) == 8:
                by_inode[fields[6]] = fields[7]
    paths = []
    try:
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            target = os.readlink(entry)
            if target.startswith("socket:["):
                paths.append(by_inode.get(target[8:-1], ""))
    except OSError:
        pass
    return [path for path in paths if path]


def mounts_below(directory):
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return sorted(line.split()[4] for line in file if line.split()[4].startswith(directory + "/"))


def option_of_kind(event, *kinds):
    for kind in kinds:
        for option in event["options"]:
            if option["kind"] == kind:
                return option["id"]
    raise AssertionError(f"no option of {kinds} in {event['options']}")


def allow(event):
    return option_of_kind(event, "allow_once")


def refuse(event):
    return option_of_kind(event, "reject_once")


def wait_until(condition, seconds=30, step=0.1):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(step)
    return False


def interrupt(process):
    process.send_signal(signal.SIGINT)


def log(text):
    print("# " + text, file=sys.stderr, flush=True)


def mount_tmpfs(directory, size):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", directory], check=True)


def fill(directory):
    try:
        with open(os.path.join(directory, ".filler"), "wb") as file:
            while True:
                file.write(b"\0" * 65536)
    except OSError:
        pass


def unmount(directory):
    subprocess.run(["umount", directory], check=True)
