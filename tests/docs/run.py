#!/usr/bin/env python3
"""Runs the examples of the docs and compares what they print with what the docs show.

usage: tests/docs/run.py LARDER [--bless] [PAGE…]

A fenced `console` block of README.md or a page below docs/ is a session: lines that start with `$ ` are typed (a final
backslash continues them), the lines after them are what must be printed, standard error included. The sessions of one
page run in order, in a folder that `larder init` filled, or in an empty one where the page runs `larder init` itself.
Ids, times and durations may differ; a line `…` stands for any number of lines. --bless rewrites the pages with what
was printed.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
# The key that pointers are derived from, so that they come out as printed.
KEY = bytes([7]) * 32
VARIABLE = [
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)?( ?)(µs|ms|s)\b"), r"<duration>"),
]


def masked(line):
    for pattern, name in VARIABLE:
        line = pattern.sub(name, line)
    return re.sub(r" +", " ", line).rstrip()


def sessions(block):
    """The commands of a block, each with the lines that the page shows."""
    found, lines = [], iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            typed = [line]
            while typed[-1].endswith("\\"):
                typed.append(next(lines))
            found.append((typed, []))
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"a console block begins with `$ `, not with {line!r}")
    return found


def matches(shown, printed):
    """Whether the lines agree; `…` on a line of its own stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(matches(shown[1:], printed[skip:]) for skip in range(len(printed) + 1))
    return bool(printed) and masked(shown[0]) == masked(printed[0]) and matches(shown[1:], printed[1:])


class Page:
    def __init__(self, path, larder, folder):
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.folder, self.place = folder, folder / ".place"
        self.environment = os.environ | {
            "PATH": f"{larder.parent}:{os.environ['PATH']}",
            "HOME": str(folder / ".user"),
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        for name in list(self.environment):
            if name.startswith("LARDER_") and name != "LARDER_MODELS":
                del self.environment[name]
        if "LARDER_MODELS" not in self.environment:
            self.environment["LARDER_MODELS"] = str(pathlib.Path.home() / ".cache/larder/models")
        start = folder
        if "larder init" not in "".join(BLOCK.findall(self.text)):
            start = folder / "project"
            subprocess.run([larder, "init", start], check=True, capture_output=True)
            self.set_key(start)
        self.place.write_text(str(start))

    @staticmethod
    def set_key(project):
        home = project / ".larder"
        home.mkdir(mode=0o700, exist_ok=True)
        key = home / "key"
        if not key.exists():
            key.write_bytes(KEY)
            key.chmod(0o600)

    def type(self, command):
        script = f'cd "$(cat {self.place})"\n{command}\ncode=$?\npwd >{self.place}\nexit $code\n'
        done = subprocess.run(
            ["bash", "-c", script], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        )
        if "larder init" in command:
            self.set_key(pathlib.Path(self.place.read_text().strip()))
        return done.stdout.decode("utf-8", "replace").splitlines()

    def run(self, bless):
        failures, text, end = 0, [], 0
        for block in BLOCK.finditer(self.text):
            made = []
            for typed, shown in sessions(block[1]):
                command = "\n".join([typed[0][2:], *typed[1:]])
                printed = self.type(command)
                if matches(shown, printed):
                    made.extend([*typed, *shown])
                    continue
                made.extend([*typed, *printed])
                failures += 1
                line = self.text[: block.start()].count("\n") + 2
                if not bless:
                    print(f"{self.path.relative_to(ROOT)}:{line}: `{command}` printed", file=sys.stderr)
                    print("\n".join(f"    {line}" for line in printed), file=sys.stderr)
                    print("  and the page shows", file=sys.stderr)
                    print("\n".join(f"    {line}" for line in shown), file=sys.stderr)
            text.append(self.text[end : block.start()] + "```console\n" + "".join(f"{line}\n" for line in made) + "```")
            end = block.end()
        if bless and failures:
            self.path.write_text("".join(text) + self.text[end:], encoding="utf-8")
        return failures


def main():
    words = [word for word in sys.argv[1:] if word != "--bless"]
    bless = "--bless" in sys.argv
    if not words:
        sys.exit(__doc__)
    larder = pathlib.Path(words[0]).resolve()
    pages = [pathlib.Path(word).resolve() for word in words[1:]] or [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    passed = failed = 0
    for path in pages:
        blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
        if not blocks:
            continue
        commands = sum(len(sessions(block)) for block in blocks)
        with tempfile.TemporaryDirectory() as folder:
            wrong = Page(path, larder, pathlib.Path(folder)).run(bless)
        passed, failed = passed + commands - wrong, failed + wrong
    if bless:
        print(f"{failed} of {passed + failed} examples rewritten")
        return
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
