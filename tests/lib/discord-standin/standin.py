# SPDX-License-Identifier: MIT
"""The stand-in of Discord from Python: the program and its control interface (README.md)."""

import json
import os
import subprocess
import urllib.error
import urllib.request

STEP = 30


class Refused(AssertionError):
    """The control interface says that this cannot be."""


class Standin:
    def __init__(self, program, token, port=0, record=None):
        self.token = token
        recording = ["--record", record] if record else []
        read, write = os.pipe()
        os.write(write, token.encode())
        os.close(write)
        self.process = subprocess.Popen([program, "--token-fd", str(read), "--port", str(port), *recording],
                                        stdout=subprocess.PIPE, pass_fds=[read], text=True)
        os.close(read)
        self.where = json.loads(self.process.stdout.readline())

    def call(self, verb, timeout=STEP, **args):
        request = urllib.request.Request(self.where["control"] + verb, json.dumps(args).encode())
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(f"{verb} {args}: {error.read().decode(errors='replace')}") from error

    def wait(self, verb, count=1, seconds=STEP, **args):
        """Items of a list as soon as there are @count."""
        result = self.call("wait", timeout=seconds + 10,
                           **{"for": verb, "with": args, "count": count, "timeout_ms": int(seconds * 1000)})
        assert result["ok"], (verb, args, result.get("items", result))
        return result["items"]

    def items(self, verb, **args):
        return self.call(verb, **args)["items"]

    def stop(self):
        self.process.terminate()
        return self.process.wait(10)


class Checks:
    """TAP."""

    def __init__(self):
        self.number = self.failed = 0

    def ok(self, value, name):
        self.number += 1
        self.failed += not value
        print(f"{'ok' if value else 'not ok'} {self.number} - {name}", flush=True)

    def end(self):
        print(f"1..{self.number}")
        return 1 if self.failed else 0
