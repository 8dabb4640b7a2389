#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the SDK's headers and writes a C program that prints what plugins were compiled against: the size of every
public struct, the offset of every field, the value of every enumerator."""

import os
import re
import sys


def strip(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"\\\n", " ", text)
    return re.sub(r"^\s*#.*$", "", text, flags=re.M)


def body_at(text, brace):
    """Text between the braces that open at @brace."""
    depth = 0
    for at in range(brace, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[brace + 1:at], at + 1
    raise SystemExit("unbalanced braces")


def field_names(body):
    for part in body.split(";"):
        part = part.strip()
        if not part:
            continue
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", part)
        if pointer:
            yield pointer.group(1)
            continue
        yield re.search(r"(\w+)\s*(\[[^]]*\])?$", part).group(1)


def structs(text):
    for match in re.finditer(r"\b(typedef\s+)?struct\s+(_\w+\s*)?\{", text):
        body, end = body_at(text, match.end() - 1)
        if match.group(1):
            name = re.match(r"\s*(\w+)\s*;", text[end:]).group(1)
        else:
            name = match.group(2).strip()[1:]
        yield name, list(field_names(body))


def enums(text):
    for match in re.finditer(r"\btypedef\s+enum\s*\{", text):
        body, end = body_at(text, match.end() - 1)
        name = re.match(r"\s*(\w+)\s*;", text[end:]).group(1)
        yield name, [item.split("=")[0].strip() for item in body.split(",") if item.strip()]


def main():
    output, headers = sys.argv[1], sys.argv[2:]
    lines = []
    for path in sorted(headers):
        text = strip(open(path, encoding="utf-8").read())
        for name, fields in sorted(structs(text)):
            lines.append(f'    printf("{name} %zu\\n", sizeof({name}));')
            for field in fields:
                lines.append(f'    printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
        for name, items in sorted(enums(text)):
            for item in items:
                lines.append(f'    printf("{name}.{item} = %d\\n", (int){item});')
    with open(output, "w", encoding="utf-8") as out:
        out.write("#include <stddef.h>\n#include <stdio.h>\n\n#include \"errand-box-plugin.h\"\n\n")
        out.write("int\nmain(void)\n{\n" + "\n".join(lines) + "\n    return 0;\n}\n")
    print(f"{os.path.basename(output)}: {len(lines)} lines")


if __name__ == "__main__":
    main()
