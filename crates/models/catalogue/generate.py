#!/usr/bin/env python3
"""Writes models.zip, the built-in catalogue of models, from the table in a release of the Python package litellm.

    python3 crates/models/catalogue/generate.py 1.106.2
"""
import datetime
import pathlib
import subprocess
import sys
import tempfile
import zipfile

TABLE = "litellm/model_prices_and_context_window_backup.json"
HERE = pathlib.Path(__file__).resolve().parent


def main(version):
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, f"litellm=={version}"], check=True)
        (wheel,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            table = archive.extract(TABLE, folder)
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        cargo = ["cargo", "run", "--quiet", "--release", "-p", "larder-models", "--example", "catalogue", "--"]
        done = subprocess.run([*cargo, table, version, today], cwd=HERE, check=True, stdout=subprocess.PIPE)
    # A fixed time, so that the same table gives the same file.
    entry = zipfile.ZipInfo("models.jsonl", (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(HERE / "models.zip", "w") as archive:
        archive.writestr(entry, done.stdout, compresslevel=9)
    print((HERE / "models.zip").stat().st_size, "bytes,", done.stdout.count(b"\n") - 1, "models")


if __name__ == "__main__":
    main(*sys.argv[1:] or ["1.106.2"])
