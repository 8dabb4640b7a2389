#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each SDK header compiles alone, as C11, C17 and C++17, pedantically."""

import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

LANGUAGES = {
    "c11": ("CC", ["-x", "c", "-std=c11", "-Wstrict-prototypes"]),
    "c17": ("CC", ["-x", "c", "-std=c17", "-Wstrict-prototypes"]),
    "c++17": ("CXX", ["-x", "c++", "-std=c++17"]),
}
WARNINGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-unused-parameter", "-Wno-unused-function"]


def system_flags():
    """Other people's headers are not judged here."""
    flags = subprocess.run(["pkg-config", "--cflags", "gio-2.0", "json-glib-1.0"], check=True, capture_output=True,
                           text=True).stdout.split()
    return [part for flag in flags for part in (["-isystem", flag[2:]] if flag.startswith("-I") else [flag])]


def compile_header(job):
    header, language, flags = job
    variable, options = LANGUAGES[language]
    compiler = shlex.split(os.environ.get(variable, "cc" if variable == "CC" else "c++"))
    result = subprocess.run(compiler + options + WARNINGS + flags + ["-"], input=f'#include "{header}"\nextern int something;\n', text=True,
                            capture_output=True)
    return header, language, result


def main():
    source, build = sys.argv[1], sys.argv[2]
    flags = ["-I", source, "-I", build] + system_flags()
    headers = sorted(path.name for path in pathlib.Path(source).glob("*.h") if not path.name.endswith("-private.h"))
    headers.append("eb-version.h")
    jobs = [(header, language, flags) for header in headers for language in LANGUAGES]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for header, language, result in pool.map(compile_header, jobs):
            if result.returncode != 0:
                failed += 1
                print(f"{header} as {language}:\n{result.stderr}")
    print(f"{len(jobs)} compilations, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
