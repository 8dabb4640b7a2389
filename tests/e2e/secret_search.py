# SPDX-License-Identifier: MIT
"""Looks for secrets, in every shape they could have been put into, wherever a leak could be: files, processes, and the
images of their memory that a debugger writes."""

import base64
import os
import pathlib
import re
import subprocess
import tempfile

import harness

# Larger files are no place for what is told or logged.
LARGEST = 64 << 20
PAGE = 4096


def shapes(secret):
    """Every form of a secret that is searched, by name."""
    raw = secret.encode()
    found = {"raw": raw, "reversed": raw[::-1], "hex": raw.hex().encode(), "HEX": raw.hex().upper().encode(),
             "percent": "".join(f"%{byte:02X}" for byte in raw).encode(),
             "percent, small": "".join(f"%{byte:02x}" for byte in raw).encode(),
             "json": "".join(f"\\u{byte:04x}" for byte in raw).encode(), "utf-16": raw.decode().encode("utf-16-le")[:-1]}
    for shift in range(3):
        text = base64.b64encode(b"x" * shift + raw)
        text = text[(shift * 8 + 5) // 6:(shift + len(raw)) * 8 // 6]
        found[f"base64+{shift}"] = text
        found[f"base64url+{shift}"] = text.replace(b"+", b"-").replace(b"/", b"_")
    return found


def used_pages(path):
    """The file without the pages that are all zeroes: most of an image is room that was never used."""
    empty, pages = bytes(PAGE), []
    with open(path, "rb") as file:
        while page := file.read(PAGE):
            if page != empty:
                pages.append(page)
    return b"".join(pages)


class Search:
    """For the secrets of a dictionary, name -> text."""

    def __init__(self, secrets):
        self.forms = {f"{name} ({shape})": value for name, secret in secrets.items() for shape, value in shapes(secret).items()}

    def bytes(self, where, data):
        return [f"{where}: {name}" for name, value in self.forms.items() if value in data]

    def file(self, path):
        return self.bytes(str(path), pathlib.Path(path).read_bytes())

    def files(self, *roots, newer=0.0, skip=()):
        """What was found in regular files changed since @newer, and how many were read."""
        found, count = [], 0
        for root in roots:
            for folder, _, names in os.walk(root):
                for path in (os.path.join(folder, name) for name in names):
                    try:
                        info = os.lstat(path)
                        if (not os.path.isfile(path) or os.path.islink(path) or path in skip or info.st_mtime < newer
                                or info.st_size > LARGEST):
                            continue
                        found += self.file(path)
                        count += 1
                    except OSError:
                        continue
        return found, count

    def processes(self):
        """In arguments and environment of every process of the machine but this one, and how many there were."""
        found, seen = [], 0
        for pid, line in harness.command_lines():
            if pid == os.getpid():
                continue
            found += self.bytes(f"argv of {pid} ({line[:40]!r})", line.encode(errors="replace"))
            found += self.bytes(f"environment of {pid} ({line[:40]!r})", harness.environment(pid))
            seen += 1
        return found, seen

    def hidden(self, pid):
        """In the process's memory that images leave out: where secrets are meant to lie."""
        found = []
        with open(f"/proc/{pid}/smaps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                place = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
                if place:
                    begin, end = (int(number, 16) for number in place.groups())
                elif line.startswith("VmFlags:") and " dd" in line:
                    try:
                        memory.seek(begin)
                        found += self.bytes(f"memory of {pid}", memory.read(end - begin))
                    except (OSError, OverflowError, ValueError):
                        continue  # the kernel's own pages
        return found

    def core(self, pid, directory):
        """In an image of the process, of all that the kernel would ever write into one; its size in bytes."""
        # Private and shared, huge pages, DAX: what is left out is what was marked MADV_DONTDUMP, and files that are mapped and
        # were not changed.
        pathlib.Path(f"/proc/{pid}/coredump_filter").write_text("0x1fb", encoding="ascii")
        with tempfile.TemporaryDirectory(dir=directory) as place:
            image = os.path.join(place, "core")
            # Not the script gcore: the service loads plugins from /proc/self/fd/N, which a debugger that looks for symbols would
            # open as a descriptor of its own.
            done = subprocess.run(
                ["timeout", "-k", "5", "120", "gdb", "-nx", "--batch", "--readnever", "-iex", "set sysroot /nowhere", "-iex",
                 "set auto-load no", "-iex", "set debuginfod enabled off", "-ex", "set use-coredump-filter on", "-ex",
                 "set dump-excluded-mappings off", "-ex", f"attach {pid}", "-ex", f"gcore {image}", "-ex", "detach"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0 or f"Saved corefile {image}" not in done.stdout:
                raise AssertionError(f"no image of {pid}: {done.stdout}{done.stderr}")
            return self.bytes(f"image of {pid} ({harness.executable(pid)})", used_pages(image)), os.path.getsize(image)
