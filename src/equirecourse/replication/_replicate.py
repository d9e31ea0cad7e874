"""The paper in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from equirecourse._files import check_writable, write_beside
from equirecourse.replication._cells import FULL, PROTOCOLS, QUICK, Cell, Scale, table1_cells, table2_cells
from equirecourse.replication._figures import box_figure, png, toy_figures
from equirecourse.replication._markdown import (
    TABLE_2_GAPS,
    Table,
    black_box_table,
    evidence_table,
    markdown,
    real_gap_sentences,
    real_gap_table,
    svm_table,
)
from equirecourse.replication._page import render_page, versions
from equirecourse.replication._paper import DATASETS
from equirecourse.replication._people import load
from equirecourse.replication._real_gaps import method_cells, screening_cells
from equirecourse.replication._run import compute
from equirecourse.replication._store import Store, parquet

__all__ = ["PARTS", "Replication", "replicate"]

PARTS = ("table1", "table2", "figure-toy", "figures", "real-gaps", "all")
_TITLE = "Equalizing Recourse across Groups, replicated"
_SVM_GAPS = {"printed": "gap", "honest": "gap"}


@dataclass(frozen=True)
class Replication:
    """What was computed.

    Attributes
    ----------
    runs : dict of DataFrame
        One row per run: of "table1", "table2" and "real-gaps", as far as they were asked for.
    tables : tuple of Table
        The tables, as text.
    sentences : tuple of str
        Which method closes which real gap.
    figures : dict of bytes
        Title → PNG.
    folder : Path
        Where all of it was written.
    """

    runs: dict[str, pd.DataFrame]
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]
    figures: dict[str, bytes]
    folder: Path

    @property
    def markdown(self) -> str:
        """All tables and sentences as Markdown."""
        listed = "\n".join(f"* {sentence}" for sentence in self.sentences)
        head = f"## What closes a real gap\n\n{listed}\n\n" if self.sentences else ""
        return head + markdown(self.tables)


def replicate(
    what: str = "all",
    *,
    folder: str | Path = "replication",
    quick: bool = False,
    datasets: Sequence[str] | None = None,
    protocols: Sequence[str] | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> Replication:
    """Compute the paper's tables and figures, under its own protocol and under an honest one.

    Finished runs are kept in ``folder`` and never computed again, so that a call that was stopped goes on where it
    stopped, and a second call only writes tables and figures.

    Parameters
    ----------
    what : {"table1", "table2", "figure-toy", "figures", "real-gaps", "all"}, default="all"
        "figures" are those of both tables.
    folder : path-like, default="replication"
        Where runs, tables and figures go; made if it is not there.
    quick : bool, default=False
        Small sizes, two data sets and two runs, in a minute or two: to see that everything works, not to be quoted.
    datasets : sequence of str, optional
        Some of "german", "credit", "propublica", "givemecredit". The last two may not be redistributed, and are read
        from the folder that ``EQUIRECOURSE_DATA`` names.
    protocols : sequence of str, optional
        "printed", "honest", or both.
    n_jobs : int, optional
        Runs at a time, as in joblib.
    verbose : bool, default=False
        Show progress, on a terminal as a bar.

    Returns
    -------
    Replication
        Runs, tables and figures. The folder then has ``table1.parquet``, ``table2.parquet`` and ``real_gaps.parquet``
        with one row per run, ``replication.md``, ``replication.html`` and ``figures/``.

    Examples
    --------
    >>> import tempfile
    >>> from equirecourse.replication import replicate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = replicate("figure-toy", folder=folder)
    >>> list(found.figures)
    ['toy_linear', 'toy_rbf']
    """
    if what not in PARTS:
        raise ValueError(f"what must be one of {', '.join(map(repr, PARTS))}, got {what!r}.")
    scale = _scale(quick, datasets)
    for protocol in protocols or ():
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocols are 'printed' and 'honest', got {protocol!r}.")
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ValueError(f"{str(target)!r} is a file; name a folder for the results.")
    if what in ("real-gaps", "all"):
        _check_boosting(what)
    if what != "figure-toy":
        for name in scale.datasets:
            load(name, as_printed=True)  # a data set that is not there is better known now than in an hour
    target.mkdir(parents=True, exist_ok=True)
    check_writable(target / "replication.md", target / "replication.html")
    store = Store(target, scale)
    runs = _compute(what, store, protocols or PROTOCOLS, n_jobs=n_jobs, verbose=verbose)
    tables, figures, sentences = _present(what, runs)
    command = "equirecourse replicate " + " ".join([what, *(["--quick"] if quick else [])])
    found = Replication(runs, tuple(tables), tuple(sentences), figures, target)
    _write(found, command)
    return found


def _check_boosting(what: str) -> None:
    """Say that boosting is not there now, and not when its turn has come."""
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError) as error:  # an OSError if the library itself cannot be loaded
        raise ImportError(
            f'replicate {what!r} needs LightGBM ({error}); run pip install "equirecourse[boost]".'
        ) from None


def _scale(quick: bool, datasets: Sequence[str] | None) -> Scale:
    scale = QUICK if quick else FULL
    if datasets is None:
        return scale
    for name in datasets:
        if name not in DATASETS:
            raise ValueError(f"The paper's data sets are {', '.join(DATASETS)}; got {name!r}.")
    return replace(scale, datasets=tuple(name for name in DATASETS if name in datasets))


def _compute(
    what: str, store: Store, protocols: Sequence[str], *, n_jobs: int | None, verbose: bool
) -> dict[str, pd.DataFrame]:
    runs: dict[str, pd.DataFrame] = {}

    def collect(cells: list[Cell]) -> pd.DataFrame:
        compute(cells, store, n_jobs=n_jobs, verbose=verbose)
        return store.read(cells)

    def wanted(cells: list[Cell]) -> list[Cell]:
        return [cell for cell in cells if cell.protocol in protocols]

    if what in ("table1", "figures", "all"):
        runs["table1"] = collect(wanted(table1_cells(store.scale)))
    if what in ("table2", "figures", "all"):
        runs["table2"] = collect(wanted(table2_cells(store.scale)))
    if what in ("real-gaps", "all"):
        screened = collect(screening_cells(store.scale))
        methods = collect(method_cells(store.scale, screened))
        runs["real-gaps"] = pd.concat([screened, methods], ignore_index=True)
    return runs


def _present(what: str, runs: dict[str, pd.DataFrame]) -> tuple[list[Table], dict[str, bytes], list[str]]:
    tables: list[Table] = []
    figures: dict[str, bytes] = {}
    sentences: list[str] = []
    for name, make, gaps, title in (
        ("table1", svm_table, _SVM_GAPS, "Behind Table 1"),
        ("table2", black_box_table, TABLE_2_GAPS, "Behind Table 2"),
    ):
        if name not in runs:
            continue
        tables.append(make(runs[name]))
        if "honest" in set(runs[name]["protocol"]):
            tables.append(evidence_table(runs[name], title, gaps))
        for (protocol, bound), some in runs[name].groupby(["protocol", "bound"], sort=False):
            suffix = f", ν = {bound}" if bound else ""
            number = "Table 1" if name == "table1" else "Table 2"
            drawn = box_figure(some, f"{number}, {protocol} protocol{suffix}", gaps[str(protocol)])
            figures["_".join(part for part in (name, str(protocol), _plain(str(bound))) if part)] = png(drawn)
    if "real-gaps" in runs and (runs["real-gaps"]["model"] != "plain").any():
        tables.append(real_gap_table(runs["real-gaps"]))
        sentences = real_gap_sentences(runs["real-gaps"])
    if what in ("figure-toy", "all"):
        figures |= {name: png(figure) for name, figure in toy_figures().items()}
    return tables, figures, sentences


def _plain(bound: str) -> str:
    return f"nu_{bound.replace('/', '_over_')}" if bound else ""


def _write(found: Replication, command: str) -> None:
    """Tables, figures and rows; each file is whole or not there."""
    for name, runs in found.runs.items():
        write_beside(found.folder / f"{name.replace('-', '_')}.parquet", parquet(runs))
    if found.figures:
        (found.folder / "figures").mkdir(exist_ok=True)
    for name, data in found.figures.items():
        write_beside(found.folder / "figures" / f"{name}.png", data)
    text = f"# {_TITLE}\n\n`{command}`, {versions()}\n\n{found.markdown}"
    write_beside(found.folder / "replication.md", text)
    page = render_page(_TITLE, command, found.tables, found.sentences, found.figures)
    write_beside(found.folder / "replication.html", page)
