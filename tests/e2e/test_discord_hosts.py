# SPDX-License-Identifier: MIT
"""A host that an agent asks for in vain: a line in the thread, a button for it, and a rule that lives as long as its
session and nowhere else."""

import secrets
import unittest

import harness
from discord_world import ALICE, BOB, CHECK, Chat

HOST = "packages.errand-box.invalid"  # never resolves (RFC 6761): what the broker says shows how far it got


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.chat = Chat(cls.world, operators=[BOB]).start()
        cls.addClassCleanup(cls.chat.close)

    def setUp(self):
        self.tag = secrets.token_hex(2)

    @staticmethod
    def reach(word):
        """An errand that asks for the host, and what it says in the end."""
        return f"@mock shell curl -s -m 20 -o /dev/null -w '%{{http_connect}}' https://{HOST}/ > {word}.txt; true\n@mock say {word} over"

    def came_of(self, name, word):
        return (self.world.project(f"{name}-{self.tag}") / f"{word}.txt").read_text(encoding="utf-8")

    def run_errand(self, thread, prompt, word):
        thread.allow(text="curl")
        thread.wait(f"^{word} over$")
        self.assertEqual(thread.settled(prompt), CHECK, thread.describe())

    def test_allowed_for_one_session(self):
        thread = self.chat.open(f"first-{self.tag}: {self.reach('one')}")
        self.run_errand(thread, thread.id, "one")
        self.assertEqual(self.came_of("first", "one"), "403", thread.describe())

        asked = thread.question(text=HOST)
        self.assertEqual(thread.count(f"asked for {HOST}"), 1, thread.describe())
        # Who only uses the session can ask; the one who may allow is told.
        thread.press(asked, "^Allow for this session$", user=ALICE)
        thread.press(asked, "^Ask an operator$", user=ALICE)
        again = thread.question(text=f"May this session reach {HOST}")
        self.assertEqual([user["id"] for user in again["mentions"]], [BOB], thread.describe())
        thread.press(again, "^Allow for this session$", user=BOB)
        thread.wait(rf"{HOST}.*Allow for this session|Allow for this session.*{HOST}|\*\*Allow for this session\*\*")

        prompt = thread.say(self.reach("two"))
        self.run_errand(thread, prompt, "two")
        self.assertEqual(self.came_of("first", "two"), "502", thread.describe())

        # The service begins anew, and so does the guest; the host is still this session's, and nobody else's.
        self.chat.terminate()
        self.chat.start()
        prompt = thread.say(self.reach("three"))
        self.run_errand(thread, prompt, "three")
        self.assertEqual(self.came_of("first", "three"), "502", thread.describe())
        other = self.chat.open(f"other-{self.tag}: {self.reach('one')}")
        self.run_errand(other, other.id, "one")
        self.assertEqual(self.came_of("other", "one"), "403", other.describe())
        other.say("!hosts")
        thread.say("!hosts")
        thread.wait(HOST + r"(?!.*refused)")
        # What the run before knew of its limits ended with it.
        self.assertEqual(self.chat.manners(lost_answers=1), [])
