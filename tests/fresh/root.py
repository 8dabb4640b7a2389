# SPDX-License-Identifier: MIT
"""A machine of its own for a test: a clean Debian root made from this machine's own apt sources, in mount and process
namespaces that end with the test, and with them everything that was started in there."""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import tempfile

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Reaps what its children leave behind, as an init does.
INIT = """
mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" &&
mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev &&
mount -t tmpfs -o mode=0755 tmpfs run && mkdir run/lock && mount -t tmpfs -o mode=1777 tmpfs tmp &&
mkdir -p .old && pivot_root . .old && cd / && umount -l /.old && rmdir /.old && echo ready || exit 1
trap : CHLD
while :; do sleep 1000 & wait $!; done
"""
# What changes by itself, or is a program's record of its own doings, and no part of how a host is set up.
PASSED_OVER = [
    r"/(proc|sys|dev|run|tmp)(/.*)?",
    r"/var/cache/(apt|debconf|ldconfig)(/.*)?",   # caches, rebuilt when they are missing
    r"/var/log(/.*)?",
    r"/var/lib/(apt|dpkg|ucf|pam|systemd/deb-systemd-helper.*)(/.*)?",  # the package manager's own records
    r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-",  # the account tools' copies of what they changed last
    r"/etc/(ld\.so\.cache|\.pwd\.lock)",
    r"/var/lib/systemd(/catalog.*)?",
    r"/(srv|root)(/.*)?",                         # the test's own, and a person's
]


def skip_reason():
    """Why these tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root: a machine of its own has mounts and accounts"
    for program in ("mmdebstrap", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    probe = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        return "namespaces are not allowed here: " + probe.stderr.decode(errors="replace").strip()
    return None


def apt_sources():
    places = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    return [place for place in places if place.is_file() and place.suffix in (".list", ".sources")]


def release():
    text = pathlib.Path("/etc/os-release").read_text(encoding="utf-8")
    return re.search(r'^VERSION_CODENAME="?([a-z]+)', text, re.M).group(1)


def own_sources():
    """Sources of the release itself: no backports, so that setup has to find them."""
    codename = release()
    chosen = []
    for place in apt_sources():
        text = place.read_text(encoding="utf-8")
        if re.search(rf"\b{codename}\b", text) and "-backports" not in text:
            chosen.append(place)
    return chosen


def base_archive(cache):
    """A tar of a minimal root; made once, some minutes at worst."""
    archive = cache / f"base-{release()}.tar"
    if not archive.exists():
        partial = archive.with_suffix(".partial")
        command = ["mmdebstrap", "--format=tar", "--variant=minbase", "--include=ca-certificates", release(), str(partial)]
        result = subprocess.run(command + [str(place) for place in own_sources()], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError("mmdebstrap: " + result.stderr[-2000:])
        partial.rename(archive)
    return archive


class Root:
    def __init__(self, cache):
        self.cache = pathlib.Path(cache)
        self.cache.mkdir(parents=True, exist_ok=True)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ebfresh-", dir="/var/tmp"))
        os.chmod(self.dir, 0o755)
        self.init = None
        try:
            subprocess.run(["tar", "-C", str(self.dir), "-xf", str(base_archive(self.cache))], check=True)
            self._copy_network()
            self._start()
        except BaseException:
            self.close()
            raise

    def _copy_network(self):
        """What this machine knows about reaching the outside: resolver, certificates, apt's settings for its mirror."""
        for name in ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"):
            if os.path.exists("/" + name):
                shutil.copyfile("/" + name, self.dir / name)
        for place in pathlib.Path("/usr/local/share/ca-certificates").glob("*.crt"):
            target = self.dir / "usr/local/share/ca-certificates"
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, target)
        for place in own_sources():
            shutil.copy(place, self.dir / "etc/apt/sources.list.d")
        (self.dir / "etc/apt/sources.list").unlink(missing_ok=True)
        # Packages that an earlier run fetched are not fetched again.
        kept = self.cache / "archives"
        kept.mkdir(exist_ok=True)
        for place in kept.glob("*.deb"):
            os.link(place, self.dir / "var/cache/apt/archives" / place.name)
        (self.dir / "etc/apt/apt.conf.d/99keep").write_text('APT::Keep-Downloaded-Packages "true";\n', encoding="utf-8")

    def _start(self):
        self.init = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--", "sh", "-c", INIT, "init", str(self.dir)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.init.stdout.readline().strip() != "ready":
            raise RuntimeError("the namespaces of the root could not be made")
        children = pathlib.Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text(encoding="ascii")
        self.pid = int(children.split()[0])
        self.view = pathlib.Path(f"/proc/{self.pid}/root")

    def command(self, *args):
        return ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--root", "--wd=/", "--", "env", "-i",
                f"PATH={PATH}", "HOME=/tmp", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *args]

    def run(self, *args, timeout=600, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.command(*args), capture_output=True, text=True, timeout=timeout, check=False, **kwargs)

    def must(self, *args, **kwargs):
        result = self.run(*args, **kwargs)
        if result.returncode != 0:
            raise AssertionError(f"{' '.join(args)}: {result.returncode}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
        return result

    def write(self, path, text, mode=0o644):
        place = self.view / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        place.chmod(mode)

    def listing(self):
        """Path -> type, mode, owner of every file; the accounts and id ranges; the packages."""
        found = {}
        passed = re.compile("|".join(f"(?:{pattern})" for pattern in PASSED_OVER))
        pending = [""]
        while pending:
            below = pending.pop()
            with os.scandir(str(self.view) + below + "/") as entries:
                for entry in entries:
                    path = f"{below}/{entry.name}"
                    if passed.fullmatch(path):
                        continue
                    info = entry.stat(follow_symlinks=False)
                    found[path] = f"{stat.filemode(info.st_mode)} {info.st_uid}:{info.st_gid}"
                    if stat.S_ISDIR(info.st_mode):
                        pending.append(path)
        for name in ("passwd", "group", "subuid", "subgid"):
            place = self.view / "etc" / name
            found[f"lines of /etc/{name}"] = sorted(place.read_text(encoding="utf-8").splitlines()) if place.exists() else None
        found["packages"] = sorted(self.must("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n").stdout.split("\n"))
        found["mounts"] = sorted(line.split()[4] for line in
                                 (self.view / "proc/1/mountinfo").read_text(encoding="utf-8").splitlines())
        return found

    def keep_archives(self):
        for place in (self.dir / "var/cache/apt/archives").glob("*.deb"):
            target = self.cache / "archives" / place.name
            if not target.exists():
                shutil.copy(place, target)

    def close(self):
        if self.init is not None:
            self.keep_archives()
            self.init.kill()
            self.init.wait()
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.dir)], check=False)


def difference(before, after):
    lines = []
    for key in sorted(set(before) | set(after)):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if isinstance(old, list) and isinstance(new, list):
            lines += [f"{key}: gone {item}" for item in old if item not in new]
            lines += [f"{key}: new {item}" for item in new if item not in old]
        else:
            lines.append(f"{key}: {old} -> {new}")
    return lines
