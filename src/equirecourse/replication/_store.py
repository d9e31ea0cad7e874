"""Where finished runs are kept: one small file per cell, written beside and renamed, so that a break loses one run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from equirecourse._files import write_beside
from equirecourse.replication._cells import Cell, Scale
from equirecourse.replication._people import seed_of

__all__ = ["Store", "parquet"]


class Store:
    """Finished cells of one scale in a folder.

    Parameters
    ----------
    folder : Path
        Anything goes into ``folder/cells``.
    scale : Scale
        Runs of another scale, or of the same one with other settings, lie elsewhere and are never mixed up.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.scale = scale
        # How many runs of which data sets are wanted changes nothing about a run.
        same = {name: value for name, value in asdict(scale).items() if name not in ("datasets", "runs")}
        self.cells = folder / "cells" / f"{scale.name}-{seed_of(sorted(same.items())):08x}"

    def path(self, cell: Cell) -> Path:
        """The file of a cell."""
        return self.cells / f"{cell.key(self.scale)}.parquet"

    def missing(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that are still to be computed. A file that cannot be read counts as missing."""
        return [cell for cell in cells if self._row(cell) is None]

    def write(self, cell: Cell, row: dict[str, Any]) -> None:
        """Keep a finished run."""
        self.cells.mkdir(parents=True, exist_ok=True)
        write_beside(self.path(cell), parquet(pd.DataFrame([cell.columns() | row])))

    def read(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """All finished runs of these cells, one row each, in their order."""
        rows = [row for cell in cells if (row := self._row(cell)) is not None]
        return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()

    def _row(self, cell: Cell) -> pd.DataFrame | None:
        try:
            return pd.read_parquet(self.path(cell))
        except (OSError, ValueError):  # not there, or not a Parquet file
            return None


def parquet(frame: pd.DataFrame) -> bytes:
    """A frame as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()
