"""The files that are fetched: their addresses, their names, and the sha256 of those whose bytes we know."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GIVEMECREDIT", "PROPUBLICA", "REGISTRY", "RemoteFile", "Source"]


@dataclass(frozen=True)
class Source:
    """An address, the name its file has in the cache, and its sha256 if we know it."""

    url: str
    filename: str
    sha256: str | None = None


@dataclass(frozen=True)
class RemoteFile:
    """One file that a fetcher needs.

    Attributes
    ----------
    title : str
        The data set, for messages.
    shared_path : str
        Its path in the folder named by ``EQUIRECOURSE_DATA``.
    shared_sha256 : str
        The sha256 of the file at ``shared_path``.
    sources : tuple of Source
        Where to download it, tried in order.
    by_hand : str
        Where a person finds it, for messages.
    by_hand_names : tuple of str
        Names under which a file that a person put into the cache is recognised.
    """

    title: str
    shared_path: str
    shared_sha256: str
    sources: tuple[Source, ...]
    by_hand: str
    by_hand_names: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the file may have in the cache."""
        return (*self.by_hand_names, *(source.filename for source in self.sources))


# Addresses of the publishers. When one has moved, the error says where to find the file by hand.
GIVEMECREDIT = RemoteFile(
    title="Give Me Some Credit",
    shared_path="givemecredit/cs-training.csv.gz",
    shared_sha256="af451a1ef057cba625581c4be556cde51043f605b6334988b86149cd4d6e8288",
    sources=(
        Source("https://openml.org/data/v1/download/22125240/GiveMeSomeCredit.arff", "GiveMeSomeCredit.arff"),
        Source("https://api.openml.org/data/v1/download/22125240/GiveMeSomeCredit.arff", "GiveMeSomeCredit.arff"),
    ),
    by_hand="https://www.kaggle.com/c/GiveMeSomeCredit (or OpenML, data set 46929)",
    by_hand_names=("cs-training.csv", "cs-training.csv.gz"),
)

PROPUBLICA = RemoteFile(
    title="ProPublica's COMPAS data",
    shared_path="propublica/compas_two_years_noid.csv.gz",
    shared_sha256="7a8514f23456741fac4e600ba1a0657d474ed808cac77b795c90d6cedd6ac032",
    sources=(
        Source(
            url="https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
            filename="compas-scores-two-years.csv",
        ),
    ),
    by_hand="https://github.com/propublica/compas-analysis",
    by_hand_names=("compas-scores-two-years.csv",),
)

REGISTRY = (GIVEMECREDIT, PROPUBLICA)
