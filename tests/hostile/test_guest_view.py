# SPDX-License-Identifier: MIT
"""What a hostile agent finds in its guest: run as the agent by its own shell, and as the guest's root from the daemon."""

import json
import os
import time
import unittest

import harness
from harness import Try, allow


class GuestView(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config(memory="1GiB", pids=256, disk="1GiB", tmp="64MiB")

    def shell(self, script, project="view"):
        """Runs a script as the agent, through a real agent's shell tool; its output comes back by the project."""
        path = self.world.project(project)
        run = Try(self.world, f"@mock shell {{ {script} ; }} > /workspace/out.txt 2>&1; echo rc=$? >> /workspace/out.txt",
                  "--agent", "claude-agent-acp", "--project", project, answer=allow).wait()
        self.assertEqual(run.code, 0, run.describe())
        return (path / "out.txt").read_text(errors="replace")

    def as_guest_root(self, instance, project, script):
        """A command of the guest's root, by the daemon's API: what a root exploit inside would see."""
        body = json.dumps({"command": ["/bin/sh", "-c", script], "record-output": True, "wait-for-websocket": False,
                           "interactive": False, "user": 0, "group": 0})
        answer = self.world.incus("POST", f"/1.0/instances/{instance}/exec?project={project}", body)
        operation = answer["metadata"]["id"]
        done = self.world.incus("GET", f"/1.0/operations/{operation}/wait?timeout=120")
        output = done["metadata"]["metadata"]["output"]
        return self.world.incus_raw("GET", output["1"] + f"?project={project}")

    def test_mounts_and_broker_directory(self):
        out = self.shell("touch /opt/errand/run/x; rm /opt/errand/run/model.sock; mount -o remount,rw /opt/errand/run;"
                         " ls -la /opt/errand/run; cat /proc/self/mountinfo; ls /dev/incus /var/lib/incus")
        self.assertIn("Read-only file system", out)
        self.assertIn("model.sock", out)
        host_mounts = {line.split()[4] for line in out.splitlines()
                       if len(line.split()) > 6 and self.world.dir in line.split()[3]}
        self.assertLessEqual(host_mounts, {"/workspace", "/state", "/opt/errand/run"}, out)
        self.assertIn("/dev/incus", out)
        self.assertNotIn("/dev/incus/sock", out)

    def test_memory_and_pids_limits(self):
        out = self.shell("head -1 /proc/meminfo; python3 -c 'x=bytearray(3<<30)' ; echo hog=$?")
        self.assertRegex(out, "hog=(137|1)")
        out = self.shell("i=0; while [ $i -lt 600 ]; do sleep 20 & i=$((i+1)); done; jobs -p | wc -l; echo survived")
        self.assertRegex(out, "(?i)(resource temporarily unavailable|cannot fork|retry)")

    def test_disk_limit(self):
        out = self.shell("fallocate -l 2G /var/tmp/big || dd if=/dev/zero of=/var/tmp/big bs=1M count=2000; echo disk=$?;"
                         " rm -f /var/tmp/big; fallocate -l 128M /tmp/big; echo tmp=$?")
        self.assertRegex(out, "(?i)(quota exceeded|no space)")
        self.assertNotIn("tmp=0", out)

    def test_secrets_are_nowhere_in_the_guest(self):
        found = {}

        def search(run, event):
            if event["event"] == "tool" and not found and event.get("status") in ("in_progress", "pending"):
                time.sleep(1)
                info = self.world.incus("GET", "/1.0/instances?all-projects=true&recursion=1")["metadata"][0]
                # The values go in as patterns over the command's own arguments, which are excluded from the search. Two
                # controls, one in a file and one in an environment, show that the search finds what is there.
                patterns = f"-e {self.world.model.key[7:]} -e {self.world.chat_token[10:]} -e control-4711"
                script = ("echo control-4711 > /var/control; EB_CONTROL=control-4711 sleep 300 & sleep 0.3; control=$!;"
                          f" grep -rlaF {patterns} / --exclude-dir=sys --exclude-dir=proc 2>/dev/null;"
                          " for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || [ -z \"$(grep -laF "
                          f"{patterns} $p/environ 2>/dev/null)\" ] || "
                          "{ [ $p = /proc/$control ] && echo environment-control || echo $p; }; done;"
                          " kill $control; rm /var/control; echo searched")
                found["out"] = self.as_guest_root(info["name"], info["project"], script)
                (self.world.project("search") / "enough").touch()

        run = Try(self.world, "@mock shell while [ ! -e enough ]; do sleep 0.1; done", "--agent", "claude-agent-acp", "--project", "search", answer=allow,
                  before_event=search).wait()
        self.assertEqual(run.code, 0, run.describe())
        self.assertEqual(found["out"].split(), ["/var/control", "environment-control", "searched"], found)
        self.assertNotIn(self.world.model.key, run.stderr + json.dumps(run.events))

    def test_the_exec_request_shows_no_nonce(self):
        seen = {}

        def look(run, event):
            if event["event"] == "tool" and "out" not in seen:
                seen["out"] = json.dumps(self.world.incus("GET", "/1.0/operations?recursion=1&all-projects=true"))
                seen["processes"] = harness.all_command_lines()

        run = Try(self.world, "@mock shell printenv ANTHROPIC_API_KEY > nonce.txt; printenv ANTHROPIC_AUTH_TOKEN >> nonce.txt",
                  "--agent", "claude-agent-acp", "--project", "exec", answer=allow, before_event=look).wait()
        self.assertEqual(run.code, 0, run.describe())
        nonce = (self.world.project("exec") / "nonce.txt").read_text().split()[0]
        self.assertIn("launch", seen["out"])
        self.assertNotIn(nonce, seen["out"])
        self.assertNotIn(nonce, seen["processes"])
        self.assertNotIn(self.world.model.key, seen["processes"])

