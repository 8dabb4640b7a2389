# SPDX-License-Identifier: MIT
"""What goes wrong between a session and its model provider, as the people in its thread are told: a key that is refused, a
broker that dies, and a planted key that somebody passes on."""

import json
import os
import secrets
import signal
import subprocess
import time
import unittest

import harness
from discord_world import BOB, CHECK, Chat


class Notices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.chat = Chat(cls.world, operators=[BOB]).start()
        cls.addClassCleanup(cls.chat.close)

    def setUp(self):
        self.tag = secrets.token_hex(2)

    def mentioned(self, message):
        return [user["id"] for user in message["mentions"]]

    def set_key(self, value):
        done = subprocess.run([harness.EB, "--config", self.world.config, "creds", "set", "model-key"], env=self.world.env,
                              input=value, text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def key_is(self, good, thread):
        """Turns until the provider has seen a key of that kind: the service looks for new ones now and then."""
        def asked():
            seen = len(self.world.model.requests())
            thread.settled(thread.say("@mock say again"))
            return [row["key_ok"] for row in self.world.model.requests()[seen:] if row.get("auth_header")]

        self.assertTrue(harness.wait_until(lambda: good in asked(), 60, step=1), thread.describe())

    def test_refused_key(self):
        thread = self.chat.open(f"key-{self.tag}: @mock say begun")
        self.assertEqual(thread.settled(thread.id), CHECK, thread.describe())
        self.addCleanup(self.set_key, self.world.model.key)
        self.set_key("sk-wrong-" + "0" * 32)
        self.key_is(False, thread)
        told = thread.wait("refuses the key of this service \\(401\\)")
        self.assertIn("errand-box creds set model-key", told["content"])
        self.assertEqual(self.mentioned(told), [BOB], thread.describe())
        # However often it happens: an operator is called once.
        thread.settled(thread.say("@mock say again"))
        self.assertEqual(thread.count("refuses the key of this service"), 1, thread.describe())
        # Another key is used without a restart, and nobody is called for it.
        self.set_key(self.world.model.key)
        self.key_is(True, thread)
        thread.say("@mock say works again")
        thread.wait("^works again$")
        self.assertEqual(thread.count("refuses the key of this service"), 1, thread.describe())
        thread.say("!stop")
        self.discord_archived(thread)

    def forbidden(self, thread):
        """What a provider forbids is the operator's business as well, and the agent's to hear."""
        prompt = thread.say("@mock status 403")
        told = thread.wait("refuses the key of this service \\(403\\)")
        self.assertEqual(self.mentioned(told), [BOB], thread.describe())
        thread.settled(prompt)
        self.assertEqual(thread.count("refuses the key of this service"), 1, thread.describe())

    def discord_archived(self, thread):
        self.assertTrue(self.chat.discord.wait("threads", id=thread.id, archived=True, seconds=60))

    def kill_broker(self):
        (pid,) = self.world.brokers()
        os.kill(pid, signal.SIGKILL)
        return pid

    def broker_dies(self, thread):
        first = self.kill_broker()
        thread.wait("broker of this session ended and was replaced at once: connections that were open are cut")
        prompt = thread.say("@mock say all well")
        thread.wait("^all well$")
        self.assertEqual(thread.settled(prompt), CHECK, thread.describe())
        self.assertNotIn(first, self.world.brokers())

    def broker_is_given_up(self, thread):
        """It dies again and again: said once more, when there is no other one."""
        begun = time.monotonic()
        while not thread.count("the broker of this session is gone"):
            self.assertLess(time.monotonic(), begun + 50, thread.describe())
            if self.world.brokers():
                self.kill_broker()
            harness.wait_until(lambda: self.world.brokers() or thread.count("is gone"), 3, step=0.02)
        gone = thread.wait("the broker of this session is gone: the agent reaches no model provider")
        self.assertIn("!stop", gone["content"])
        self.assertEqual(thread.count("was replaced at once"), 1, thread.describe())

    def planted_key(self, name):
        """On in all of these tests: this one leaks it on purpose, and the operator is called."""
        self.world.leaks |= {name, self.chat.log.name}
        thread = self.chat.open(f'{name}: @mock shell echo "$PRODUCTION_API_KEY" > mine; rev mine\n@mock say over')
        thread.allow()
        thread.wait("^over$")
        told = thread.wait(harness.ALARM)
        self.assertEqual(self.mentioned(told), [BOB], thread.describe())
        key = (self.world.project(name) / "mine").read_text().strip()
        self.assertGreater(len(key), 40)
        for text in thread.texts() + [self.chat.logged(10000)]:
            self.assertNotIn(key, text)
            self.assertNotIn(key[::-1], text)
        self.assertEqual(thread.count(harness.ALARM), 1, thread.describe())
        self.assertIn("canary", self.world.run("sessions", "logs", self.session(name), "--egress").stdout)
        # Whoever runs these tests would have been told.
        self.world.leaks -= {name, self.chat.log.name}
        seen = self.world.alarms()
        self.assertTrue(any(name in line for line in seen), seen)
        self.assertTrue(any(os.path.basename(self.chat.log.name) in line for line in seen), seen)
        self.world.leaks |= {name, self.chat.log.name}
        return thread

    def test_one_that_suffers_much(self):
        thread = self.planted_key(f"planted-{self.tag}")
        self.broker_dies(thread)
        self.forbidden(thread)
        self.broker_is_given_up(thread)
        thread.say("!stop")
        self.discord_archived(thread)

    def session(self, project):
        listed = json.loads(self.world.run("--json", "sessions", "list").stdout)["sessions"]
        return next(entry["id"] for entry in listed if entry["project"] == project)
