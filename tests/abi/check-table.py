#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares what the SDK's headers say now with the table that belongs to this ABI version.

What the library exports belongs to it too. A line that changed or went breaks every plugin there is: EB_ABI_MAJOR must grow. New lines at the end of an interface
or of an enumeration, or a new struct, need EB_ABI_MINOR to grow. Either way the table of the new version is made with
--update and committed."""

import argparse
import pathlib
import platform
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--library", required=True)
parser.add_argument("--abi", required=True)
parser.add_argument("--update", action="store_true")
options = parser.parse_args()

if platform.machine() != "x86_64":
    print("the table is for x86_64")
    sys.exit(77)
table = pathlib.Path(__file__).parent / f"abi-{options.abi}-x86_64.txt"
now = subprocess.run([options.program], check=True, capture_output=True, text=True).stdout.splitlines()
symbols = subprocess.run(["nm", "-D", "--defined-only", options.library], check=True, capture_output=True, text=True).stdout
now += sorted(f"{line.split()[2]} exported" for line in symbols.splitlines())
foreign = [line for line in now if line.endswith(" exported") and not line.lower().startswith("eb_")]
if foreign:
    print("exported without the prefix eb_: " + ", ".join(foreign))
    sys.exit(1)
if options.update:
    table.write_text("\n".join(now) + "\n", encoding="utf-8")
    sys.exit(0)
if not table.exists():
    print(f"there is no {table.name}: make it with --update")
    sys.exit(1)
then = table.read_text(encoding="utf-8").splitlines()
before = {line.rsplit(" ", 1)[0]: line for line in then}
after = {line.rsplit(" ", 1)[0]: line for line in now}
changed = [f"{before[key]} became {after[key]}" for key in before if key in after and before[key] != after[key]]
gone = [f"{before[key]} is gone" for key in before if key not in after]
new = [f"{after[key]} is new" for key in after if key not in before]
for line in changed + gone + new:
    print(line)
if changed or gone or new:
    print(f"\nthe plugin ABI {options.abi} changed: see the head of {pathlib.Path(__file__).name}")
    sys.exit(1)
print(f"{len(then)} sizes, offsets, values and exports as in {table.name}")
