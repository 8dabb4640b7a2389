# SPDX-License-Identifier: MIT
"""What the service does when the host it runs on is not what it should be: before it starts, and while people work."""

import json
import os
import pwd
import re
import socket
import subprocess
import unittest

import harness
from discord_world import CHANNEL, CHECK, CROSS, Chat

MIB = 1 << 20


def ask(world, method, **params):
    """One request to the control socket, as another program would make it."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(60)
        peer.connect(os.path.join(world.state, "run", "control.sock"))
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        peer.sendall(json.dumps(request).encode() + b"\n")
        with peer.makefile("r", encoding="utf-8") as lines:
            return next(answer for answer in map(json.loads, lines) if answer.get("id") == 1)


class Start(unittest.TestCase):
    def test_gaps_are_named_and_can_be_accepted(self):
        world = harness.world()
        missing = world.degraded("degraded")
        if not missing:
            self.skipTest("this host can do everything")
        world.write_config(accept=())
        refused = world.run("serve", timeout=60)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        said = [line for line in refused.stderr.splitlines() if line.startswith("errand-box: ")]
        self.assertEqual(len(said), 1, refused.stderr)
        for gap in missing:
            self.assertEqual(len(re.findall(rf"\b{gap} ", said[0])), 1, refused.stderr)
        # The line it gives is the one that helps.
        self.assertIn(f"[service] of {world.config}: ", refused.stderr)
        accepted = json.loads(re.search(r"accept_degraded = (\[.*\])", refused.stderr)[1])
        self.assertEqual(sorted(accepted), sorted(missing))
        world.write_config(accept=accepted)
        with subprocess.Popen([harness.EB, "--config", world.config, "serve"], env=world.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                up = harness.wait_until(lambda: process.poll() is not None or world.run("status").returncode == 0)
                self.assertTrue(up and process.poll() is None)
                health = ask(world, "status")["result"]["health"]
            finally:
                process.terminate()
        self.assertEqual(process.returncode, 0)
        self.assertIsNone(health["hold"])
        self.assertEqual([row["id"] for row in health["checks"] if row["accepted"]], missing)


class Later(unittest.TestCase):
    """One thread at work while things go wrong around it."""

    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.projects = cls.world.projects
        account = pwd.getpwnam("errand")
        # Small enough to be filled; guests work on it as on any other place.
        harness.mount_tmpfs(cls.projects, "300m")
        cls.addClassCleanup(subprocess.run, ["umount", "-l", cls.projects], check=True)
        os.chown(cls.projects, account.pw_uid, account.pw_gid)
        os.chmod(cls.projects, 0o700)
        cls.chat = Chat(cls.world, service=('doctor_interval = "1s"', 'min_free = "100MiB"'))
        cls.addClassCleanup(cls.chat.close)
        cls.chat.start()
        cls.thread = cls.chat.open("steady: @mock say begun")
        assert cls.thread.settled(cls.thread.id) == CHECK, cls.thread.describe()

    def look(self):
        """Now, and not when the next minute is over."""
        return ask(self.world, "health.check")["result"]

    def held(self):
        return ask(self.world, "status")["result"]["health"]["hold"]

    def refused(self, *parts):
        """Somebody asks for a session and learns why there is none."""
        message = self.chat.say("other: @mock say hello")
        self.chat.discord.wait("messages", channel=CHANNEL, id=message, reaction=CROSS)

        def answers():
            return [entry["content"] for entry in self.chat.discord.items("messages", channel=CHANNEL, author="bot")
                    if (entry.get("message_reference") or {}).get("message_id") == message]

        self.assertTrue(harness.wait_until(answers), self.chat.logged())
        for part in ("no session can start just now", *parts):
            self.assertIn(part, answers()[0])

    def works(self):
        message = self.thread.say("@mock say still here")
        self.assertEqual(self.thread.settled(message), CHECK)

    def over(self, count):
        self.thread.wait("new sessions can start again", count=count)
        self.assertIsNone(self.held())

    def test_in_this_order(self):
        self.gap_appears_and_goes()
        self.disk_fills_up()
        self.daemon_is_wedged()
        # What was refused left nothing, and now it works.
        other = self.chat.open("other: @mock say hello")
        self.assertEqual(other.settled(other.id), CHECK)
        self.assertEqual(self.chat.manners(), [])

    def gap_appears_and_goes(self):
        os.chmod(self.projects, 0o755)
        self.thread.wait("new sessions are paused: E-33 project directory: .*0755", count=1)
        self.refused("E-33 project directory")
        self.works()
        status = self.world.run("status")
        self.assertIn("E-33", status.stdout)
        os.chmod(self.projects, 0o700)
        self.over(1)

    def disk_fills_up(self):
        filler = os.path.join(self.projects, ".filler")
        self.grow(filler, 150)
        self.look()
        self.thread.wait("disk space is running low: 1[0-9][0-9] MiB of 300 MiB", count=1)
        self.assertIsNone(self.held())
        self.grow(filler, 240)
        self.look()
        self.assertTrue(harness.wait_until(self.held), self.thread.describe())
        self.refused("the disk is nearly full: ", " MiB of 300 MiB are free below " + self.projects,
                     "new sessions need 100 MiB")
        self.works()
        # A little more than the bound is not enough.
        os.truncate(filler, 180 * MIB)
        self.look()
        self.assertTrue(harness.wait_until(lambda: self.free() > 100 * MIB))
        self.assertIsNotNone(self.held())
        os.unlink(filler)
        self.look()
        self.assertTrue(harness.wait_until(lambda: self.held() is None), self.thread.describe())

    def free(self):
        spaces = ask(self.world, "status")["result"]["health"]["space"]
        return next(space["free"] for space in spaces if space["path"] == self.projects)

    def grow(self, path, mib):
        with open(path, "ab") as file:
            os.posix_fallocate(file.fileno(), 0, mib * MIB)

    def daemon_is_wedged(self):
        def report(**params):
            return ask(self.world, "watchdog.report", target="incus", **params)

        self.assertIn("error", report(state="odd"))
        self.assertIn("result", report(state="wedged", detail="incus takes connections and does not answer", seconds=12))
        self.refused("incus takes connections and does not answer")
        self.works()
        self.assertIn("result", report(state="ok"))
        self.assertIsNone(self.held())


if __name__ == "__main__":
    unittest.main()
