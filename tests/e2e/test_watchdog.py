# SPDX-License-Identifier: MIT
"""The watchdog beside the service: a container daemon that takes connections and does not answer, and a service that
dies and that nobody brings back."""

import json
import os
import pathlib
import re
import secrets
import signal
import subprocess
import unittest

import harness
from discord_world import CHANNEL, CHECK, CROSS, Chat, Thread, together


class Watchdog(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.chat = Chat(cls.world).start()
        cls.addClassCleanup(cls.chat.close)

    def setUp(self):
        self.tag = secrets.token_hex(2)
        self.log = open(os.path.join(self.world.dir, f"watchdog-{self.tag}.log"), "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.process = subprocess.Popen([str(harness.BUILD / "errand-box-watchdog"), "-v", "--config", self.world.config],
                                        env=self.world.env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)
        self.addCleanup(self.end_watchdog)
        self.assertTrue(harness.wait_until(lambda: self.shown("service") == "up" and self.shown("backend") == "ok"), self.logged())

    def end_watchdog(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.assertEqual(self.process.wait(10), 0)

    def logged(self):
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")

    def shown(self, part):
        try:
            return json.loads(pathlib.Path(self.world.state, "run", "watchdog.json").read_text(encoding="utf-8"))[part]["state"]
        except (OSError, ValueError):
            return None

    def hold(self):
        """Why the service takes no new session, as `errand-box status` tells it."""
        result = self.world.run("--json", "status", timeout=20)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["health"]["hold"]

    def told(self, thread):
        """Within half a minute, in the thread that lives, with what to type."""
        notice = thread.wait("takes connections and has not answered", seconds=30)
        self.assertIn("errand-box setup", notice["content"])

    def seen_once(self):
        once = self.world.run("--json", "watchdog", "--once", timeout=30)
        self.assertEqual((once.returncode, json.loads(once.stdout)["backend"]["state"]), (1, "wedged"), once.stderr)

    def wedge_and_recover(self, thread):
        pid = self.world.incusd_pid()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        together(lambda: self.told(thread), self.seen_once)
        self.assertEqual(self.shown("backend"), "wedged")
        # The chat goes on: a question is answered, an errand refused with the reason; the command line says the same.
        thread.say("!status")
        thread.wait("- state: ", seconds=20)
        refused = Thread(self.chat, self.chat.say(f"refused-{self.tag}: @mock say never"))
        self.assertEqual(refused.settled(refused.id, seconds=20), CROSS)
        self.chat.discord.wait("messages", channel=CHANNEL, author="bot", text="no session can start .*has not answered", seconds=20)
        self.assertIn("has not answered", str(self.hold()))
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(harness.wait_until(lambda: self.hold() is None, 30), self.hold())
        # A change is a line; a look is none.
        lines = [line for line in self.logged().splitlines() if "container backend" in line]
        self.assertEqual(len(lines), 3, self.logged())

    def freeze(self):
        """A guest whose launcher sees that its service is gone ends by itself; frozen, it does not."""
        entry = self.world.incus("GET", "/1.0/instances?all-projects=true&recursion=1")["metadata"][0]
        answer = self.world.incus("PUT", f"/1.0/instances/{entry['name']}/state?project={entry['project']}", '{"action":"freeze"}')
        done = self.world.incus("GET", answer["operation"] + "/wait?timeout=30")
        self.assertEqual(done["metadata"]["status"], "Success", done)

    def die(self):
        self.freeze()
        self.chat.kill()
        self.assertTrue(harness.wait_until(lambda: not self.world.instances(), 60), self.logged())
        self.assertEqual(self.world.brokers(), [])
        self.assertEqual([path for path in harness.mounts_below(self.world.dir) if "/containers/" in path], [])
        self.assertTrue(harness.wait_until(lambda: re.search("ended [1-9][0-9]* guest", self.logged())), self.logged())

    def test_wedged_daemon_then_dead_service(self):
        thread = self.chat.open(f"watched-{self.tag}: @mock say begun")
        self.assertEqual(thread.settled(thread.id), CHECK)
        self.wedge_and_recover(thread)
        thread.say("@mock shell sleep 300")
        thread.wait("`execute`")
        self.die()
