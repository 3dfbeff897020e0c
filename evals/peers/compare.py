#!/usr/bin/env python3
"""Larder compared with headroom-ai and tokenfold, on the same texts, in one run, on one core; writes a Markdown table.

    export LARDER_CORPORA=…                        # see evals/README.md
    python3 evals/peers/compare.py [--into docs/benchmarks.md]

Makes a virtual environment in ~/.cache/larder/peers and installs both from the package index of pip. All outputs are
counted and scored by `larder-evals peer`: the same counter (o200k_base) and the same rules for everyone.

How each is used. headroom: `compress()` with its defaults and `protect_recent=0`, the text as the result of a tool; its
optional text model is not installed. tokenfold: `compress()` with the format named and its strongest preset that is
lossless. Larder: the targets of its own suites. The time is the best of three; starting up is left out for everyone.
"""
import argparse, base64, gzip, hashlib, json, logging, os, pathlib, re, subprocess, sys, time, venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get("LARDER_PEERS", pathlib.Path.home() / ".cache/larder/peers"))
WHEELS = ["headroom-ai==0.42.0", "tokenfold==0.5.2", "tiktoken==0.14.0"]
HEADING = "## Condensing beside its peers"
O200K = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


def files(root):
    """Corpus, name and bytes of every text compared."""
    for corpus, ends in (("logs", (".log",)), ("json", (".json", ".json.gz")), ("diffs", (".diff", ".diff.gz"))):
        for path in sorted((root / corpus).iterdir()):
            if path.name.endswith(ends) and path.name not in ("ids.json", "index.json"):
                data = path.read_bytes()
                yield corpus, path.name, gzip.decompress(data) if path.suffix == ".gz" else data


def best_of_three(run):
    best, result = float("inf"), None
    for _ in range(3):
        started = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - started)
    return best * 1e3, result


def headroom(_corpus, data):
    from headroom import compress
    from headroom.cache.compression_store import get_compression_store

    text = data.decode()
    call = {"id": "c1", "type": "function", "function": {"name": "fetch_data", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "What does it say?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    ms, result = best_of_three(lambda: compress(messages, model="gpt-4o", protect_recent=0))
    out = result.messages[2]["content"]
    if not isinstance(out, str):
        out = json.dumps(out, ensure_ascii=False)
    if out == text:
        return out, ms, True
    # Exact if any reference in the output leads to the original's bytes.
    for reference in set(re.findall(r"\b[a-f0-9]{12,24}\b", out)):
        entry = get_compression_store().retrieve(reference)
        if entry is not None and entry.original_content == text:
            return out, ms, True
    return out, ms, False


def tokenfold(corpus, data):
    import tokenfold as fold

    kind = {"logs": fold.InputFormat.COMMAND_OUTPUT, "json": fold.InputFormat.JSON, "diffs": fold.InputFormat.GIT_DIFF}[corpus]
    ms, result = best_of_three(lambda: fold.compress(data, format=kind, preset=fold.Preset.AGGRESSIVE))
    if result.payload == data:
        return data.decode(), ms, True
    try:
        back = fold.decode(result.payload)
        back = back if isinstance(back, bytes) else back.encode()
        return result.payload.decode(), ms, back == data
    except Exception:  # its own error types; whatever it is, nothing came back
        return result.payload.decode(), ms, False


class Larder:
    """The scorer, which also condenses."""

    def __init__(self):
        cargo = os.environ.get("CARGO", "cargo")
        built = os.environ.get("LARDER_EVALS")
        command = [built] if built else [cargo, "run", "--release", "-q", "-p", "larder-evals", "--"]
        self.process = subprocess.Popen([*command, "peer"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def table(rows):
    what = {"logs": "true templates visible", "json": "record ids visible", "diffs": "files named with status"}
    lines = []
    for corpus, kept in what.items():
        lines += [f"\n| {corpus} | tokens out | saved | {kept} | way back byte-exact | ms |", "|---|--:|--:|--:|--:|--:|"]
        for name in ("Larder", "headroom-ai 0.42.0", "tokenfold 0.5.2"):
            mine = [row for row in rows if row["corpus"] == corpus and row["by"] == name]
            total = lambda key: sum(row[key] for row in mine)
            saved = 100 - 100 * total("out") / total("tokens")
            share = 100 * total("kept") / max(total("of"), 1)
            exact = sum(bool(row["exact"]) for row in mine)
            lines.append(
                f"| {name} | {total('out'):,} of {total('tokens'):,} | {saved:.1f} % | {total('kept'):,} of {total('of'):,} = {share:.1f} % "
                f"| {exact} of {len(mine)} files | {total('ms'):,.0f} |"
            )
    return "\n".join(lines)


def details(rows):
    lines = ["\n| file | tokens | Larder | headroom | tokenfold |", "|---|--:|--:|--:|--:|"]
    for row in rows:
        if row["by"] != "Larder":
            continue
        same = {r["by"]: r for r in rows if (r["corpus"], r["file"]) == (row["corpus"], row["file"])}
        cell = lambda r: f"{r['out']:,}" + (f", {100 * r['kept'] / r['of']:.0f} %" if r["of"] else "") + ("" if r["exact"] else ", not exact")
        cells = [cell(same[name]) for name in ("Larder", "headroom-ai 0.42.0", "tokenfold 0.5.2")]
        lines.append(f"| {row['file'].removesuffix('.gz')} | {row['tokens']:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compare(arguments):
    logging.disable(logging.CRITICAL)
    larder, rows = Larder(), []
    for corpus, file, data in files(pathlib.Path(os.environ["LARDER_CORPORA"])):
        rows.append({"by": "Larder", "corpus": corpus, "file": file, **larder.ask(corpus=corpus, file=file)})
        for name, run in (("headroom-ai 0.42.0", headroom), ("tokenfold 0.5.2", tokenfold)):
            out, ms, exact = run(corpus, data)
            rows.append({"by": name, "corpus": corpus, "file": file, **larder.ask(corpus=corpus, file=file, text=out), "ms": ms, "exact": exact})
        print(corpus, file, *(f"{r['by'].split()[0]} {r['out']} ({r['kept']}/{r['of']}, {'exact' if r['exact'] else 'not exact'}, {r['ms']:.0f} ms)" for r in rows[-3:]), file=sys.stderr)
    text = f"{table(rows)}\n\nPer file: tokens out, share kept.\n{details(rows)}\n"
    print(text)
    if arguments.into:
        put(pathlib.Path(arguments.into), text)


def put(page, text):
    """Replaces the tables between the two comments of the page."""
    start, end = "<!-- compare.py writes from here -->", "<!-- to here -->"
    before = page.read_text() if page.exists() else ""
    if start not in before:
        before = f"{before.rstrip()}\n\n{HEADING}\n\n{start}\n{end}\n"
    head, rest = before.split(start, 1)
    page.write_text(f"{head}{start}\n{text}\n{end}{rest.split(end, 1)[1]}")


def vocabulary():
    """The file tiktoken would download, out of Larder's own build, so that peers count exactly without a network."""
    folder = HOME / "vocabularies"
    path = folder / hashlib.sha1(O200K.encode()).hexdigest()
    if not path.exists():
        tool = os.environ.get("LARDER_TOKENS")
        if not tool:
            subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--release", "-q", "-p", "larder-core", "--example", "tokens"], cwd=ROOT, check=True)
            tool = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/tokens"
        lines = subprocess.run([tool, "export", "o200k_base"], capture_output=True, check=True, text=True).stdout.split("\n")[:-1]
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(base64.b64encode(bytes.fromhex(line)) + b" %d\n" % rank for rank, line in enumerate(lines)))
    return str(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", help="a Markdown page whose tables are replaced")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not os.environ.get("LARDER_CORPORA"):
        print("LARDER_CORPORA is not set; see evals/README.md", file=sys.stderr)
        sys.exit(3)
    if arguments.inside:
        return compare(arguments)
    python = HOME / "venv/bin/python"
    if not python.exists():
        venv.create(HOME / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *WHEELS], check=True)
    # No model hub and no telemetry: what is compared is what the wheels hold.
    quiet = {"HEADROOM_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TIKTOKEN_CACHE_DIR": vocabulary()}
    os.execve(python, [str(python), __file__, "--inside", *sys.argv[1:]], {**os.environ, **quiet})


if __name__ == "__main__":
    main()
