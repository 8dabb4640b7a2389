# SPDX-License-Identifier: MIT
"""What a guest's root leaves behind, and what the host does with it."""

import json
import os
import time
import unittest

import harness
from harness import Try, allow

# Runs as the guest's root: what the host meets when it resumes, measures and deletes.
ROOT = """for d in /state /workspace; do cd $d; mkdir -p theirs/x; echo hi > theirs/x/f; chmod 0 theirs; ln -s /etc etc
ln -s %(canary)s canary; mkfifo fifo; cp /bin/true suid; chmod 4755 suid; python3 -c '
import os
for i in range(300):
    os.mkdir("d" * 200); os.chdir("d" * 200)'
done; chmod 0 /state; echo planted"""


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config(memory="1GiB", pids=256, disk="3GiB", tmp="64MiB")

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
