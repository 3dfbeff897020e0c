#!/usr/bin/env python3
"""Reads what README.md promises, so that CI runs exactly that.

readme.py command N      prints the Nth command: the only line of the Nth fenced `sh` block
readme.py answer FILE    compares what command 1 printed with the answer that README.md shows
"""

import pathlib
import re
import sys

README = pathlib.Path(__file__).parent.parent / "README.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)


def command(number):
    lines = blocks("sh")[number - 1].splitlines()
    if len(lines) != 1:
        sys.exit(f"README.md: command {number} is not one line")
    return lines[0]


def answer(path):
    """The sentences that README.md shows first must be in the output, each with its citation, whatever lines it names."""
    output = pathlib.Path(path).read_text(encoding="utf-8")
    shown = blocks("text")[0].splitlines()
    quotes = [line for line in shown if line and not line.startswith((" ", "…"))]
    sources = [match[1] for line in shown if (match := re.match(r"\s+← (.+?):\d+-\d+ ", line))]
    if not quotes or not sources:
        sys.exit("README.md shows no answer with a citation after command 1")
    for wanted in [quotes[0], sources[0]]:
        if wanted not in output:
            sys.exit(f"README.md shows {wanted!r}, which the command did not print:\n{output}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["command", number]:
            print(command(int(number)))
        case ["answer", path]:
            answer(path)
        case _:
            sys.exit(__doc__)
