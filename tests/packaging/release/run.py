#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the workflows call: tools/release, tools/release-publish and tools/freshness, with real git, npm, minisign and
errand-box, a repository on disk and a stand-in of GitHub's API. Prints TAP."""

import hashlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("EB_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests/standins/github"))
import github  # noqa: E402

spec = importlib.util.spec_from_file_location("pins_world", ROOT / "tests/component/pins/run.py")
pins = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pins)

DEADLINE = 120
IDENTITY = ["-c", "user.name=a test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"]
REPOSITORY = "someone/errand-box"


def run(arguments, cwd, environment=None, code=0, stdin=None):
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, env={**os.environ, **(environment or {})}, input=stdin,
                          stdin=None if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == code, f"{arguments[0]} ended with {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def git(cwd, *arguments):
    return run(["git", *IDENTITY, *arguments], cwd)[0]


class Release:
    """A repository with what a release is made by, and two files more."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ebr-"))
        self.tree = self.dir / "tree"
        (self.tree / "packaging/debian").mkdir(parents=True)
        (self.tree / "tools").mkdir()
        (self.tree / "meson.build").write_text("project('errand-box', ['c'],\n  version: '1.2.3',\n)\n")
        (self.tree / "packaging/debian/changelog").write_text("errand-box (1.2.3-1) unstable; urgency=medium\n")
        for name in ("release", "release-publish", "github_api.py"):
            shutil.copy2(ROOT / "tools" / name, self.tree / "tools" / name)
        git(self.tree, "init", "-q", ".")
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", "A release")

    def make(self, out, code=0, tree=None, arguments=(), umask=0o022):
        old = os.umask(umask)
        try:
            return run([(tree or self.tree) / "tools/release", "--no-deb", "--out", self.dir / out, *arguments],
                       self.dir, code=code)
        finally:
            os.umask(old)

    def key(self, password=False):
        arguments = ["minisign", "-G", "-f", "-p", "key.pub", "-s", "key", *([] if password else ["-W"])]
        run(arguments, self.dir, stdin="secret\nsecret\n" if password else "")
        return (self.dir / "key").read_text()

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def same_bytes(world):
    """Another clone, another umask, another user's files, later: the same archive."""
    world.make("one", arguments=("--tag", "v1.2.3"))
    git(world.dir, "clone", "-q", str(world.tree), "clone")
    (world.dir / "clone/notes").write_text("not committed")
    os.utime(world.dir / "clone/meson.build", (0, 0))
    world.make("two", tree=world.dir / "clone", umask=0o077)
    name = "errand-box-1.2.3.tar.gz"
    one, two = ((world.dir / out / name).read_bytes() for out in ("one", "two"))
    assert one == two, "two runs made different archives"
    assert one[4:8] == b"\0\0\0\0" and one[3] == 0, "the compressed file names a time or a file"
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        members = archive.getmembers()
    commit_time = int(git(world.tree, "show", "-s", "--format=%ct", "HEAD"))
    assert {member.mtime for member in members} == {commit_time}, members
    assert {(member.uid, member.gid) for member in members} == {(0, 0)}, members
    assert {oct(member.mode) for member in members} == {"0o755", "0o644"}, members
    assert all(member.name.split("/")[0] == "errand-box-1.2.3" for member in members)
    assert not any("notes" in member.name for member in members)
    sums = (world.dir / "one/SHA256SUMS").read_text()
    assert sums == f"{hashlib.sha256(one).hexdigest()}  {name}\n", sums
    world.make("one")  # again into the same directory
    assert (world.dir / "one" / name).read_bytes() == one


def with_packages(world):
    """What tools/build-deb leaves, here in its place a program that makes two small files, is in the sums; its log is not."""
    program = world.tree / "tools/build-deb"
    program.write_text("#!/bin/sh\nset -eu\nfor name in errand-box_1.2.3-1_amd64 liberrandbox-plugin-1-0_1.2.3-1_amd64; do\n"
                       "echo $name >\"$1/$name.deb\"\ndone\necho log >\"$1/build.log\"\necho commit >\"$1/built-from\"\n")
    program.chmod(0o755)
    for _ in range(2):
        run([world.tree / "tools/release", "--out", world.dir / "out"], world.dir)
        names = sorted(path.name for path in (world.dir / "out").iterdir())
        listed = [line.split("  ")[1] for line in (world.dir / "out/SHA256SUMS").read_text().splitlines()]
        assert listed == ["errand-box-1.2.3.tar.gz", "errand-box_1.2.3-1_amd64.deb",
                          "liberrandbox-plugin-1-0_1.2.3-1_amd64.deb"], listed
        assert names == ["SHA256SUMS", *listed], names
    run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], world.dir / "out")


def wrong_tag(world):
    for tag in ("1.2.3", "v1.2.4", "v1.2.3-rc1"):
        _, errors = world.make("out", code=1, arguments=("--tag", tag))
        assert "meson.build says version 1.2.3" in errors, errors
    (world.tree / "packaging/debian/changelog").write_text("errand-box (1.2.2-1) unstable; urgency=medium\n")
    _, errors = world.make("out", code=1)
    assert "write an entry" in errors, errors
    assert not (world.dir / "out").exists()


def other_things(world):
    (world.dir / "out").mkdir()
    (world.dir / "out/thesis.txt").write_text("mine")
    _, errors = world.make("out", code=1)
    assert "holds other things" in errors and (world.dir / "out/thesis.txt").exists(), errors


def sign(world, key, code=0):
    return run([world.tree / "tools/release", "--sign", world.dir / "out"], world.dir, stdin=key, code=code)


def signed(world):
    key = world.key()
    world.make("out")
    sign(world, key)
    run(["minisign", "-V", "-p", "key.pub", "-m", "out/SHA256SUMS"], world.dir)
    signature = (world.dir / "out/SHA256SUMS.minisig").read_text()
    assert "trusted comment: errand-box 1.2.3" in signature, signature
    assert not [path for path in world.dir.iterdir() if path.name.startswith("tmp")]


def not_signed(world):
    world.make("out")
    for key, words in (("", "no minisign key"), ("\n", "no minisign key"), ("untrusted comment: x\nRWabc\n", "cannot be used"),
                       (world.key(password=True), "without a password")):
        _, errors = sign(world, key, code=1)
        assert words in errors, errors
        assert "RW" not in errors.replace("(minisign -G -W)", ""), "a key is in the message"
    (world.dir / "out/SHA256SUMS").write_text("0" * 64 + "  errand-box-1.2.3.tar.gz\n")
    _, errors = sign(world, world.key(), code=1)
    assert "not what its SHA256SUMS says" in errors, errors
    assert not (world.dir / "out/SHA256SUMS.minisig").exists()


def publish(world, server, code=0, tag="v1.2.3", token=github.TOKEN):
    environment = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": token}
    return run([world.tree / "tools/release-publish", "--tag", tag, world.dir / "out"], world.dir, environment, code)


def published(world):
    server = github.Server(REPOSITORY, world.tree)
    try:
        world.make("out")
        _, errors = publish(world, server, code=1)
        assert "is not finished" in errors and not server.calls, errors
        sign(world, world.key())
        publish(world, server)
        release = server.releases[0]
        assert release["tag_name"] == "v1.2.3" and release["draft"] is False, release
        assert set(release["assets"]) == {"errand-box-1.2.3.tar.gz", "SHA256SUMS", "SHA256SUMS.minisig"}
        assert release["assets"]["errand-box-1.2.3.tar.gz"] == (world.dir / "out/errand-box-1.2.3.tar.gz").read_bytes()
        assert hashlib.sha256(release["assets"]["errand-box-1.2.3.tar.gz"]).hexdigest() in release["body"]
    finally:
        server.stop()


def not_published(world):
    server = github.Server(REPOSITORY, world.tree)
    try:
        world.make("out")
        sign(world, world.key())
        _, errors = publish(world, server, code=1, tag="v1;x")
        assert "no tag" in errors, errors
        _, errors = publish(world, server, code=1, token="wrong")
        assert "Bad credentials" in errors and "wrong" not in errors, errors
        (world.dir / "out/extra").write_text("x")
        _, errors = publish(world, server, code=1)
        assert "does not name: extra" in errors, errors
        (world.dir / "out/extra").unlink()
        with (world.dir / "out/errand-box-1.2.3.tar.gz").open("ab") as file:
            file.write(b"x")
        _, errors = publish(world, server, code=1)
        assert "expected" in errors and "found" in errors, errors
        assert not server.releases
        for url in ("http://192.0.2.1", "https://user@192.0.2.1", "ftp://192.0.2.1"):
            environment = {"GITHUB_API_URL": url, "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_TOKEN": github.TOKEN}
            world.make("out")
            sign(world, world.key())
            _, errors = run([world.tree / "tools/release-publish", "--tag", "v1", world.dir / "out"], world.dir,
                            environment, code=1)
            assert "the API's address" in errors, errors
    finally:
        server.stop()


class Freshness:
    """The world of pins in a repository with a remote, and GitHub."""

    def __init__(self):
        self.pins = pins.World()
        self.dir = self.pins.dir
        self.tree = self.pins.tree
        self.bare = self.dir / "remote.git"
        git(self.dir, "init", "-q", "--bare", str(self.bare))
        git(self.tree, "init", "-q", ".")
        git(self.tree, "remote", "add", "origin", str(self.bare))
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", "What is pinned")
        git(self.tree, "push", "-q", "origin", "HEAD:refs/heads/main")
        self.first = git(self.tree, "rev-parse", "HEAD").strip()
        shutil.rmtree(self.tree / ".git")  # now as the workflow has it: the last commit, detached
        git(self.tree, "init", "-q", ".")
        git(self.tree, "remote", "add", "origin", f"file://{self.bare}")
        git(self.tree, "fetch", "-q", "--depth", "1", "origin", self.first)
        git(self.tree, "checkout", "-q", "--force", "--detach", "FETCH_HEAD")
        self.github = github.Server(REPOSITORY, self.bare)

    def run(self, *arguments, code=0, tokens=None):
        environment = {**self.pins.environment, "PATH": os.environ["PATH"], "GITHUB_API_URL": self.github.url,
                       "GITHUB_REPOSITORY": REPOSITORY, **(tokens or {"GITHUB_TOKEN": github.TOKEN}),
                       "XDG_CACHE_HOME": str(self.dir / "xdg"), "ERRAND_BOX_CACHE": str(self.dir)}
        return run([ROOT / "tools/freshness", "--tree", self.tree, "--program", BUILD / "errand-box", *arguments],
                   self.dir, environment, code)

    def again(self):
        """As the next scheduled run begins: the branch main, nothing else."""
        git(self.tree, "checkout", "-q", "--force", "--detach", self.first)
        for branch in git(self.tree, "for-each-ref", "--format=%(refname:short)", "refs/heads/freshness").split():
            git(self.tree, "branch", "-q", "-D", branch)

    def remove(self):
        self.github.stop()
        self.pins.remove()


def nothing_to_open(world):
    out, _ = world.run()
    assert out == "freshness: nothing newer\n", out
    assert world.github.branches() == ["main"] and not world.github.calls


def dry_run(world):
    pins.publish_newer(world.pins)
    out, _ = world.run("--dry-run", tokens={"NO": "token"})
    assert out.startswith("branch: freshness/") and "\ntitle: Pin thing 1.2.10, tool 1.10.0\n" in out, out
    assert "| archive | `thing` | 1.0 | 1.2.10 | publisher's key |" in out, out
    assert git(world.tree, "status", "--porcelain") == "" and world.github.branches() == ["main"]
    assert not world.github.calls


def opened(world):
    world.github.add_pull("freshness/0123", {})
    world.github.add_pull("freshness/4567", {}, repository="other/copy")
    world.github.add_pull("freshness/89ab", {}, state="closed")
    pins.publish_newer(world.pins)
    out, _ = world.run()
    assert "opened" in out, out
    pull = world.github.pulls[-1]
    branch = pull["head"]["ref"]
    assert branch.startswith("freshness/") and branch in world.github.branches(), world.github.branches()
    assert pull["base"] == "main" and pull["title"] == "Pin thing 1.2.10, tool 1.10.0", pull
    assert "Digests:" in pull["body"] and "`errand-box pins verify` passes" in pull["body"], pull
    names = git(world.bare, "diff", "--name-only", "main", branch).split()
    assert names == ["guest/agents/tool/package-lock.json", "guest/agents/tool/package.json", "pins.toml"], names
    assert git(world.bare, "log", "-1", "--format=%an", branch).strip() == "errand-box freshness"
    everything = git(world.bare, "log", "-p", branch) + out + (world.tree / ".git/config").read_text()
    assert github.TOKEN not in everything, "the token was written down"
    assert "Replaces #1." in pull["body"], pull
    pull["state"] = "closed"  # by a person: the same news are not opened again
    world.again()
    out, _ = world.run()
    assert "(closed) has this already" in out and len(world.github.pulls) == 4, out


def ended_before(world):
    """Pushed, then no answer: the next run opens the request for what is there."""
    pins.publish_newer(world.pins)
    world.github.refuse = (403, {"message": "GitHub Actions is not permitted to create or approve pull requests."})
    _, errors = world.run(code=1)
    assert "not permitted" in errors and "FRESHNESS_TOKEN" in errors, errors
    world.github.refuse = None
    world.again()
    world.run(tokens={"GITHUB_TOKEN": "wrong", "FRESHNESS_TOKEN": github.TOKEN})  # the second is the one that is used
    assert len(world.github.pulls) == 1


def not_clean(world):
    _, errors = world.run(code=1, tokens={"GITHUB_REF": "refs/heads/other"})
    assert "refs/heads/other" in errors, errors
    (world.tree / "more").write_text("x")
    _, errors = world.run(code=1)
    assert "not committed" in errors, errors


def partly(world):
    """What cannot be found out is in the text of the request, and the run is a failed one."""
    pins.publish_newer(world.pins)
    del world.pins.server.files["/releases"]
    _, errors = world.run(code=1)
    assert "/releases is not there" in errors, errors
    assert world.github.pulls[0]["title"] == "Pin tool 1.10.0", world.github.pulls
    assert "Not found out:\n\n- `thing`" in world.github.pulls[0]["body"], world.github.pulls


TESTS = [
    (Release, "the same commit gives the same bytes", same_bytes),
    (Release, "packages are in the sums", with_packages),
    (Release, "a tag that is not the version", wrong_tag),
    (Release, "a directory with other things", other_things),
    (Release, "signed with a key from stdin", signed),
    (Release, "not signed", not_signed),
    (Release, "published", published),
    (Release, "not published", not_published),
    (Freshness, "nothing newer: nothing opened", nothing_to_open),
    (Freshness, "a dry run", dry_run),
    (Freshness, "a pull request, once", opened),
    (Freshness, "a run that ended in the middle", ended_before),
    (Freshness, "a tree with changes", not_clean),
    (Freshness, "one entry cannot be found out", partly),
]


def missing():
    for program in ("npm", "minisign", "git"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def main():
    if missing():
        print(f"1..0 # SKIP {missing()}")
        return 0
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, (make, name, test) in enumerate(TESTS, 1):
        world = make()
        try:
            test(world)
            print(f"ok {number} - {name}")
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            failed += 1
            text = str(problem).replace("\n", "\n# ")
            print(f"not ok {number} - {name}\n# {text}")
        finally:
            world.remove()
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
