#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""discord.js against the stand-in, as check_discord_py.py: it is the client that the benchmarks compare with. Installs
the package that bench/discord pins into a directory of the build; skipped where that cannot be done. Prints TAP.

    check_discord_js.py PROGRAM DIRECTORY
"""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from standin import Checks, Standin  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PINNED = HERE.parent.parent.parent / "bench" / "discord"


def install(directory):
    """Why the package is not there, or None."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node or npm is not installed"
    if not (PINNED / "package-lock.json").exists():
        return "nothing pins discord.js"
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINNED / name, directory)
    if not (directory / "node_modules" / "discord.js").exists():
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], cwd=directory,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
        if done.returncode != 0:
            return "npm cannot install discord.js: " + " ".join(done.stderr.split())[:200]
    return None


class Bot:
    def __init__(self, directory, origin):
        self.words, self.changed = [], threading.Condition()
        self.process = subprocess.Popen(["node", str(HERE / "discord-js.cjs"), origin], stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, NODE_PATH=str(directory / "node_modules")))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.words.append(line.strip())
                self.changed.notify_all()

    def said(self, word, seconds=30):
        with self.changed:
            return self.changed.wait_for(lambda: word in self.words, seconds)

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


def session(standin, bot, checks):
    checks.ok(bot.said("ready"), "logged in")
    standin.call("say", content="please")
    (thread,) = standin.wait("threads", name="errand")
    (asked,) = standin.wait("messages", channel=thread["id"], components=True)
    (reply,) = standin.wait("messages", text="on it", attachments=True)
    checks.ok(reply["type"] == 19 and reply["attachments"][0]["filename"] == "note.txt", "replied with a file")
    standin.call("press", channel=thread["id"], message=asked["id"], label="allow")
    (closed,) = standin.wait("messages", channel=thread["id"], text="^allowed$")
    checks.ok(bot.said("pressed:allow:alice") and closed["components"] == [], "handled a button and edited its message")
    standin.call("drop", code=0)
    standin.call("say", content="while away")
    standin.wait("stats", name="resumed")
    checks.ok(bot.said("heard:while away") and bot.said("resumed") and bot.words.count("heard:while away") == 1,
              "resumed and got what it had missed, once")
    stats = standin.call("stats")
    checks.ok(stats["identifies"] == 1 and stats["limited"] == 0, "identified once, was never limited")
    wrong = standin.call("violations")["items"]
    checks.ok(not wrong, f"nothing to complain of: {wrong}")


def main():
    directory = pathlib.Path(sys.argv[2])
    reason = install(directory)
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    standin = Standin(sys.argv[1], "mock-discord-js")
    bot = Bot(directory, standin.where["origin"])
    checks = Checks()
    try:
        session(standin, bot, checks)
    except (AssertionError, OSError) as error:
        checks.ok(False, f"it went on to the end: {error!r}")
        print(f"# {standin.call('refusals')['items']}\n# {standin.call('gateway')['items']}")
    finally:
        bot.stop()
    checks.ok(standin.stop() == 0, "the stand-in ends with SIGTERM")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
