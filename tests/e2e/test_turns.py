# SPDX-License-Identifier: MIT
"""Turns of real agents in real guests, through the broker, with every way a question can end."""

import json
import os
import unittest

import harness
from harness import Try, allow, interrupt, refuse

AGENTS = ("opencode", "claude-agent-acp")


class Turns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = harness.world()
        cls.world.write_config()

    def assert_nothing_left(self):
        self.assertTrue(harness.wait_until(lambda: not self.world.instances()), self.world.instances())

    def attempt(self, agent, project, prompt, *args, answer=None, before_event=None):
        run = Try(self.world, prompt, "--agent", agent, "--project", project, *args, answer=answer,
                  before_event=before_event)
        return run.wait()

    def test_edit_and_command_allowed(self):
        for agent in AGENTS:
            with self.subTest(agent=agent):
                seen = len(self.world.model.requests())
                run = self.attempt(agent, f"allowed-{agent}",
                                   "@mock write /workspace/hello.txt Hello-from-the-guest\n"
                                   "@mock shell cat hello.txt > copy.txt; echo >> copy.txt; id -u >> copy.txt\n@mock say all done", answer=allow)
                self.assertEqual(run.code, 0, run.describe())
                self.assertEqual(run.end["stop_reason"], "end_turn", run.describe())
                for part in ("guest", "agent", "turn"):
                    self.assertGreater(run.end["ms"][part], 0)
                kinds = {event["event"] for event in run.events}
                self.assertLessEqual({"guest", "ready", "tool", "permission", "text", "end"}, kinds, run.describe())
                self.assertIn("all done", run.text())
                project = self.world.project(f"allowed-{agent}")
                self.assertEqual((project / "hello.txt").read_text().strip(), "Hello-from-the-guest")
                self.assertEqual((project / "copy.txt").read_text().split(), ["Hello-from-the-guest", "1000"])
                requests = self.world.model.requests()[seen:]
                self.assertTrue(requests)
                self.assertTrue(all(row["key_ok"] for row in requests if row.get("auth_header")), requests)
                self.assert_nothing_left()

    def test_edit_refused(self):
        for agent in AGENTS:
            with self.subTest(agent=agent):
                run = self.attempt(agent, f"refused-{agent}", "@mock write /workspace/no.txt never\n@mock say finished",
                                   answer=refuse)
                self.assertEqual(run.code, 0, run.describe())
                self.assertFalse((self.world.project(f"refused-{agent}") / "no.txt").exists())
                outcomes = [event for event in run.events if event["event"] == "permission" and "outcome" in event]
                self.assertTrue(outcomes, run.describe())
                self.assert_nothing_left()

    def test_cancel_while_the_question_is_open(self):
        for agent in AGENTS:
            with self.subTest(agent=agent):
                def cancel(run, event):
                    if event["event"] == "permission" and "options" in event:
                        interrupt(run.process)

                run = self.attempt(agent, f"cancel-{agent}", "@mock write /workspace/no.txt never", before_event=cancel)
                self.assertEqual(run.end["stop_reason"], "cancelled", run.describe())
                self.assertEqual(run.code, 1, run.describe())
                self.assertFalse((self.world.project(f"cancel-{agent}") / "no.txt").exists())
                self.assert_nothing_left()

    def test_history_goes_on_in_a_new_guest(self):
        for agent in AGENTS:
            with self.subTest(agent=agent):
                first = self.attempt(agent, f"history-{agent}", "@mock say remember the word heliotrope")
                self.assertEqual(first.code, 0, first.describe())
                session = next(e["session"] for e in first.events if e["event"] == "ready")
                seen = len(self.world.model.requests())
                second = self.attempt(agent, f"history-{agent}", "@mock say continued", "--resume", session)
                self.assertEqual(second.code, 0, second.describe())
                said = [text for row in self.world.model.requests()[seen:] for text in row.get("users", [])]
                self.assertTrue(any("heliotrope" in text for text in said), (said, second.describe()))
                self.assert_egress(session)
                self.assert_nothing_left()

    def assert_egress(self, session):
        """What its guests reached is on record, whole, and says nothing but where."""
        shown = self.world.run("--json", "sessions", "logs", session, "--egress")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        rows = [json.loads(line) for line in shown.stdout.splitlines()]
        self.assertEqual((rows[-1]["event"], rows[-1]["broken_at"]), ("chain", None), rows[-1])
        self.assertTrue([row for row in rows[:-1] if row["kind"] == "provider" and row["decision"] == "allowed"], rows)
        self.assertNotIn(self.world.model.key, shown.stdout)
        self.assertNotIn("heliotrope", shown.stdout)

    def test_budget_is_used_up(self):
        """Refused before anything goes up; the person is told which key raises it, and the agent does not try for minutes."""
        seen = len(self.world.model.requests())
        self.world.write_config(extra="[budget]\nsession_tokens = 50\n")
        try:
            run = self.attempt("opencode", "budget", "@mock say never")
        finally:
            self.world.write_config()
        self.assertIsNotNone(run.end, run.describe())
        self.assertIn("[budget] session_tokens", repr(run.events) + run.stderr, run.describe())
        self.assertEqual(len(self.world.model.requests()), seen, run.describe())
        self.assertNotIn(self.world.model.key, run.stderr + repr(run.events))
        self.assert_nothing_left()

    def test_provider_refuses_the_key(self):
        run = self.attempt("opencode", "status", "@mock status 401")
        self.assertIsNotNone(run.end, run.describe())
        self.assertNotEqual(run.end["stop_reason"], "cancelled", run.describe())
        self.assertNotIn(self.world.model.key, run.stderr + repr(run.events))
        self.assert_nothing_left()

