#!/usr/bin/env python3
"""Compares Larder's token counts and speed with Python tiktoken's, on the same texts, in the same run.

    pip install tiktoken
    python3 evals/tokens_vs_tiktoken.py [FILE…]              # prints counts, MB/s and the ratio; fails if counts differ
    python3 evals/tokens_vs_tiktoken.py --write-vectors      # also rewrites crates/core/tests/data/token-vectors.json

tiktoken would download its vocabularies. Here they come out of Larder's own build instead, and are used only if
their bytes have the SHA-256 that tiktoken expects of the original files. Without FILEs, texts of about 4 MB are
made by a generator with a fixed seed: prose, JSON, code and Japanese. tiktoken counts each text three times and its
best time is reported. Larder counts each in a process of its own: `first` is the first count after the vocabulary is
ready, `best` the best of three by counters that remember no count of the text. The ratio is that of `first`.
`--threads N` keeps both to N processors (Linux).
"""
import argparse, base64, hashlib, json, os, pathlib, random, subprocess, sys, tempfile, time

import tiktoken
import tiktoken_ext.openai_public as public

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "crates/core/tests/data/token-vectors.json"
ENCODINGS = ("cl100k_base", "o200k_base")


def build() -> str:
    subprocess.run([os.environ.get("CARGO", "cargo"), "build", "--release", "-q", "-p", "larder-core", "--example", "tokens"], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return str(pathlib.Path(target) / "release/examples/tokens")


def encoding(tool: str, name: str) -> tiktoken.Encoding:
    lines = subprocess.run([tool, "export", name], capture_output=True, check=True, text=True).stdout.split("\n")[:-1]
    tokens = [bytes.fromhex(line) for line in lines]

    def ranks(_url, expected_hash=None):
        original = b"".join(base64.b64encode(t) + b" %d\n" % rank for rank, t in enumerate(tokens))
        if hashlib.sha256(original).hexdigest() != expected_hash:
            sys.exit(f"{name}: the vocabulary in the build is not OpenAI's file")
        return {token: rank for rank, token in enumerate(tokens)}

    public.load_tiktoken_bpe = ranks
    return tiktoken.Encoding(**getattr(public, name)())


def syllables(rng: random.Random) -> str:
    return "".join(rng.choice(["ta", "rel", "on", "ver", "in", "st", "mo", "qu", "er", "ing", "pre", "al"]) for _ in range(rng.randint(1, 4)))


def prose(rng, size):
    words = [syllables(rng) for _ in range(3000)] + ["the", "of", "and", "to", "a", "in", "that", "it's", "he", "was"] * 150
    out = []
    while sum(map(len, out)) < size:
        out.append(" ".join(" ".join(rng.choice(words) for _ in range(rng.randint(4, 18))).capitalize() + rng.choice(".?!") for _ in range(400)) + "\n\n")
    return "".join(out)


def records(rng, size):
    rows = [{"id": rng.randint(1, 10**9), "name": syllables(rng).title(), "price": round(rng.random() * 1000, 2), "tags": [syllables(rng) for _ in range(3)], "active": rng.random() < 0.5} for _ in range(size // 110)]
    return json.dumps(rows, indent=1)


def code(rng, size):
    out = []
    for _ in range(size // 95):
        name = f"{syllables(rng)}_{syllables(rng)}"
        out.append(f"    fn {name}(&self, {syllables(rng)}: usize) -> Option<usize> {{\n        self.{syllables(rng)}.get({rng.randint(0, 99)})\n    }}\n\n")
    return "".join(out)


def japanese(rng, size):
    words = ["".join(chr(rng.randint(0x3041, 0x3093)) if rng.random() < 0.6 else chr(rng.randint(0x4E00, 0x6000)) for _ in range(rng.randint(1, 5))) for _ in range(2000)]
    out = []
    while sum(map(len, out)) * 3 < size:
        out.append("".join("".join(rng.choice(words) for _ in range(rng.randint(3, 12))) + rng.choice(["。", "、", "！\n"]) for _ in range(400)))
    return "".join(out)


GENERATORS = {"prose": prose, "json": records, "code": code, "japanese": japanese}


def compare(tool, encodings, texts) -> bool:
    same = True
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in texts.items():
            files.append(str(pathlib.Path(folder) / name))
            pathlib.Path(files[-1]).write_bytes(text.encode())
        print(f"{'vocabulary':12} {'text':26} {'MB':>6} {'tokens':>10} {'same':>5} {'tiktoken MB/s':>14} {'first MB/s':>11} {'best MB/s':>10} {'ratio':>6}")
        for name, enc in encodings.items():
            ready = []
            for file, (label, text) in zip(files, texts.items()):
                head, line, _ = subprocess.run([tool, "count", name, file], capture_output=True, check=True, text=True).stdout.split("\n")
                ready.append(float(head.split()[1]))
                size, tokens, first, best = map(int, line.split())
                fastest, theirs = float("inf"), 0
                for _ in range(3):
                    started = time.perf_counter()
                    theirs = len(enc.encode_ordinary(text))
                    fastest = min(fastest, time.perf_counter() - started)
                same &= theirs == tokens
                rate = size / fastest / 1e6
                print(f"{name:12} {label:26} {size/1e6:6.2f} {tokens:10} {str(theirs == tokens):>5} {rate:14.1f} {size/first:11.1f} {size/best:10.1f} {size/first/rate:6.1f}")
            print(f"{name:12} vocabulary ready in a fresh process: {min(ready):.0f} to {max(ready):.0f} ms")
    return same


def hostile(rng):
    """Short texts of every shape, from one class of characters to all of Unicode."""
    classes = ["abc", "ABCabc", "0123456789", " \t", "\n\r ", "'\"!?.,;:/-_", "'sStTdDmMreveRElLvV' ", "あいうカキク漢字、。「", "가나다", "éèê\u0301\u0308", "😀👍🏽\u200d", "\0\x01\x7f", "αβγДЖ", "½²٣"]
    yield from ["", " ", "\n", "<|endoftext|>", "<|im_start|>user\n<|fim_prefix|>", "a" * 700, " " * 300, "\n" * 300, "=" * 300, "don't can't I'LL we'Ve", "x" + " " * 130 + "y"]
    for _ in range(400):
        some = rng.sample(classes, rng.randint(1, 4))
        yield "".join(rng.choice(rng.choice(some)) * rng.choice([1, 1, 1, 2, 3, 9]) for _ in range(rng.randint(1, 60)))
    for _ in range(60):
        yield "".join(chr(c) for c in (rng.randint(0, 0x10FFFF) for _ in range(30)) if not 0xD800 <= c < 0xE000)
    for make in GENERATORS.values():
        yield from (make(rng, 300)[:300] for _ in range(10))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--write-vectors", action="store_true")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    tool = build()
    encodings = {name: encoding(tool, name) for name in ENCODINGS}
    if options.write_vectors:
        rng = random.Random(21)
        vectors = [{"text": text, **{name: len(enc.encode_ordinary(text)) for name, enc in encodings.items()}} for text in hostile(rng)]
        VECTORS.parent.mkdir(parents=True, exist_ok=True)
        VECTORS.write_text("[\n" + ",\n".join(json.dumps(v) for v in vectors) + "\n]\n")
        print(f"{len(vectors)} vectors written")
    if options.files:
        texts = {pathlib.Path(f).name: pathlib.Path(f).read_bytes().decode() for f in options.files}
    else:
        texts = {name: make(random.Random(7), 4_000_000) for name, make in GENERATORS.items()}
    sys.exit(0 if compare(tool, encodings, texts) else "the counts differ")


if __name__ == "__main__":
    main()
