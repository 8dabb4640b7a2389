#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`image build` that fails or is interrupted, with the real program and a recipe whose bootstrap only waits or fails.

The program runs from a directory that looks like a build directory to it, with a recipe of this test. Prints TAP.
"""

import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("EB_BUILD", "build")).resolve()
DEADLINE = 30
# Never ends, makes files all the time, has a grandchild, and heeds no polite signal.
BUSY = """#!/bin/sh
trap '' INT TERM HUP
mkdir -p "$2"
(trap '' INT TERM HUP; while :; do echo x >>"$2/grandchild"; sleep 0.05; done) &
while :; do mkdir -p "$2/$((n = n + 1))"; sleep 0.02; done
"""
FAILING = "#!/bin/sh\necho 'reading the archive'\necho 'E: no such suite' >&2\nexit 7\n"
SILENT = "#!/bin/sh\nexit 3\n"
KILLED = "#!/bin/sh\nset -e\necho 'half way'\nsh -c 'kill -9 $$'\n"


class Place:
    """A directory with the program, a recipe and a cache of its own."""

    def __init__(self, script):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ebi-"))
        self.cache = self.dir / "cache"
        for name in ("meson-private", "plugins", "share/guest/image", "guest", "core/sdk", "cache"):
            (self.dir / name).mkdir(parents=True)
        shutil.copy2(BUILD / "errand-box", self.dir)
        shutil.copy2(BUILD / "guest/init", self.dir / "guest")
        for library in (BUILD / "core/sdk").glob("*.so*"):
            if library.is_file():
                shutil.copy2(library, self.dir / "core/sdk")
        for name in ("agents", "pins.toml"):
            source = BUILD / "share" / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, self.dir / "share" / name)
        (self.dir / "share/guest/image/recipe.toml").write_text(
            'suite = "trixie"\nfree_space = "1GiB"\npackages = ["git"]\ntools = []\nagents = []\n')
        (self.dir / "share/guest/image/rootfs.sh").write_text(script)
        (self.dir / "config.toml").write_text(f'[service]\nstate_dir = "{self.dir}/state"\n')

    def build(self, own_session=False):
        return subprocess.Popen([str(self.dir / "errand-box"), "--config", str(self.dir / "config.toml"), "image", "build",
                                 "--no-import", "--cache", str(self.cache)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=own_session)

    def partial(self):
        return sorted(path for path in self.cache.iterdir() if path.name.startswith("partial-"))

    def at_work(self):
        return any((path / "root/grandchild").exists() for path in self.partial())

    def processes(self):
        """Processes that work in this place's cache."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            except OSError:
                continue
            if str(self.cache).encode() in line:
                found.append(line)
        return found

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def wait_until(condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def end(process):
    try:
        return process.communicate(timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("it did not end") from None


def interrupted(place, how, whole_group):
    process = place.build(own_session=True)
    assert wait_until(place.at_work), "the build did not begin"
    if whole_group:
        os.killpg(process.pid, how)  # as a terminal does: a group that this test made, with its leader not yet reaped
    else:
        process.send_signal(how)
    _, errors = end(process)
    assert process.returncode not in (0, -how), f"ended with {process.returncode}: {errors}"
    assert "cancel" in errors, errors
    assert not place.partial(), f"left behind: {place.partial()}"
    assert wait_until(lambda: not place.processes()), place.processes()


def fails(place, *words):
    process = place.build()
    _, errors = end(process)
    assert process.returncode != 0, "it should have failed"
    last = errors.strip().splitlines()[-1]
    for word in words:
        assert word in last, last
    assert not place.partial(), place.partial()


def killed_then_cleaned(place):
    """SIGKILL leaves a directory, the next build takes it away, and not one that somebody still fills."""
    process = place.build()
    assert wait_until(place.at_work), "the build did not begin"
    process.kill()
    end(process)
    assert wait_until(lambda: not place.processes()), place.processes()
    dead = place.partial()
    assert len(dead) == 1, dead
    alive = place.cache / "partial-alive"
    alive.mkdir()
    descriptor = os.open(alive, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    link = place.cache / "partial-link"
    outside = place.dir / "outside"
    outside.mkdir()
    (outside / "file").write_text("stays")
    link.symlink_to(outside)
    process = place.build()
    assert wait_until(lambda: not dead[0].exists() and place.at_work()), "the dead directory was not removed"
    process.terminate()
    end(process)
    os.close(descriptor)
    assert place.partial() == [alive, link], place.partial()
    assert (outside / "file").read_text() == "stays"


def two_at_once(place):
    """The lock file removed under a running build: a second build neither cleans nor disturbs the first one's."""
    first = place.build()
    assert wait_until(place.at_work), "the build did not begin"
    (place.cache / "lock").unlink()
    second = place.build()
    assert wait_until(lambda: sum((p / "root/grandchild").exists() for p in place.partial()) == 2), place.partial()
    for process in (first, second):
        process.terminate()
        end(process)
    assert not place.partial(), place.partial()


def others_cache(place):
    """A finished build that anybody could have put there, under the name that anybody can compute, is not taken."""
    place.cache.chmod(0o777)
    process = place.build()
    _, errors = end(process)
    assert process.returncode == 2, (process.returncode, errors)
    assert "others can change" in errors, errors
    assert list(place.cache.iterdir()) == [], list(place.cache.iterdir())
    place.cache.chmod(0o755)
    place.dir.chmod(0o777)
    process = place.build()
    _, errors = end(process)
    assert process.returncode == 2 and f"others can change {place.dir} " in errors, (process.returncode, errors)


TESTS = [
    ("terminated", BUSY, interrupted, signal.SIGTERM, False),
    ("interrupted from the terminal", BUSY, interrupted, signal.SIGINT, True),
    ("hung up", BUSY, interrupted, signal.SIGHUP, True),
    ("a failing step is quoted", FAILING, fails, "ended with 7", "reading the archive; E: no such suite"),
    ("a silent step is said to be silent", SILENT, fails, "ended with 3", "it printed nothing"),
    ("a killed step is said to be killed", KILLED, fails, "ended with 137", "half way"),
    ("a killed build is cleaned up by the next, a live one is not", BUSY, killed_then_cleaned),
    ("two builds without a common lock", BUSY, two_at_once),
    ("a cache that others can change", FAILING, others_cache),
]


def missing():
    if os.geteuid() != 0:
        return "needs root"
    for program in ("mmdebstrap", "npm", "unshare"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def main():
    if missing():
        print(f"1..0 # SKIP {missing()}")
        return 0
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, (name, script, test, *arguments) in enumerate(TESTS, 1):
        place = Place(script)
        try:
            test(place, *arguments)
            print(f"ok {number} - {name}")
        except AssertionError as problem:
            failed += 1
            print(f"not ok {number} - {name}\n# {problem}")
        finally:
            place.remove()
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
