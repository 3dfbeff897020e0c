#!/usr/bin/env python3
"""Compares `larder models show` with litellm's table: random ids of the catalogue, and aliases. Exits with 1 on a
difference.

    python3 crates/models/catalogue/compare.py TABLE.json --larder target/release/larder --check 30 --seed 1
"""
import argparse
import json
import random
import re
import subprocess
import sys

KINDS = ("chat", "responses", "completion", "embedding")
NAMES = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
}
PRICE = re.compile(rf"({'|'.join(NAMES)})(_above_1hr)?(?:_above_(\d+)k_tokens)?(?:_([a-z_]+))?$")
# Spellings that the table lacks, and the entry whose facts hold for them.
ALIASES = {
    "openrouter/anthropic/claude-sonnet-4.5": "claude-sonnet-4-5",
    "anthropic/claude-opus-4.6": "claude-opus-4-6",
    "anthropic/claude-4.5-haiku": "claude-haiku-4-5",
    "ca.anthropic.claude-opus-5-20260101-v1:0": "anthropic.claude-opus-5",
    "claude-opus-4-8@20270101": "claude-opus-4-8",
    "openrouter/openai/gpt-5.2": "gpt-5.2",
    "azure/gpt-5.2-2027-01-01": "azure/gpt-5.2",
    "ft:gpt-4o-2024-08-06:acme::abc": "ft:gpt-4o-2024-08-06",
    "google/gemini-2.5-pro": "gemini-2.5-pro",
    "gpt-4.1-2099-01-01": "gpt-4.1",
}


def expected(row):
    """What the source says, in the words of `larder models show`."""
    tiers = {}
    for field, dollars in row.items():
        match = PRICE.match(field)
        if match and match[4] != "cache_hit" and dollars is not None:
            service = {None: "standard", "batches": "batch"}.get(match[4], match[4])
            name = NAMES[match[1]] + ("_1h" if match[2] else "")
            tiers[service, int(match[3] or 0) * 1000, name] = dollars
    if "cache_read_input_token_cost" not in row and "input_cost_per_token_cache_hit" in row:
        tiers["standard", 0, "cache_read"] = row["input_cost_per_token_cache_hit"]
    for tier in row.get("tiered_pricing") or []:
        for field, name in NAMES.items():
            if "range" in tier and tier.get(field) is not None:
                tiers["standard", int(tier["range"][0]), name] = tier[field]
    limits = [int(row.get(name) or 0) or None for name in ("max_input_tokens", "max_output_tokens")]
    return limits, {key: round(dollars * 1e6, 6) for key, dollars in tiers.items()}


def shown(larder, model):
    done = subprocess.run([larder, "models", "show", model, "--format", "json"], stdout=subprocess.PIPE, check=True)
    entry = json.loads(done.stdout)
    tiers = {
        (tier["service"], tier["above"], name): float(price)
        for tier in entry["prices_per_million"]
        for name, price in tier.items()
        if name not in ("service", "above")
    }
    return entry, [entry["max_input"], entry["max_output"]], tiers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--larder", default="target/release/larder")
    parser.add_argument("--check", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    table = json.load(open(arguments.table))
    models = sorted(id for id, row in table.items() if row.get("mode") in KINDS)
    picked = random.Random(arguments.seed).sample(models, arguments.check)
    wrong = 0
    for model, source in [*((model, model) for model in picked), *ALIASES.items()]:
        entry, limits, prices = shown(arguments.larder, model)
        row_limits, row_prices = expected(table[source])
        # What a row leaves out may come from its maker.
        same = all(theirs in (None, ours) for theirs, ours in zip(row_limits, limits))
        same &= entry["id"] == source and prices == row_prices
        wrong += not same
        rule = entry["limits"] and f"{entry['limits']['rule']} {entry['limits']['window']}"
        print("ok   " if same else "WRONG", model, "->", entry["id"], limits, row_limits, rule, f"{len(prices)} prices")
        if not same:
            print("     shown", prices, "\n     table", row_prices)
    print(f"{wrong} of {arguments.check + len(ALIASES)} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
