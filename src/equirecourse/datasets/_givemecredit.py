"""Give Me Some Credit: 150,000 borrowers, fetched."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.io import arff
from sklearn.utils import Bunch

from equirecourse.datasets._actions import givemecredit_actions
from equirecourse.datasets._bunch import make_bunch, plus_minus, two_groups
from equirecourse.datasets._download import read_remote
from equirecourse.datasets._registry import GIVEMECREDIT

__all__ = ["fetch_givemecredit"]

N_ROWS, N_DISTRESSED, N_COMPLETE = 150_000, 10_026, 120_269

# Kaggle's names, in the order of its file, and ours.
COLUMNS = {
    "RevolvingUtilizationOfUnsecuredLines": "revolving_utilization",
    "age": "age",
    "NumberOfTime30-59DaysPastDueNotWorse": "times_30_to_59_days_late",
    "DebtRatio": "debt_ratio",
    "MonthlyIncome": "monthly_income",
    "NumberOfOpenCreditLinesAndLoans": "open_credit_lines",
    "NumberOfTimes90DaysLate": "times_90_days_late",
    "NumberRealEstateLoansOrLines": "real_estate_loans",
    "NumberOfTime60-89DaysPastDueNotWorse": "times_60_to_89_days_late",
    "NumberOfDependents": "dependents",
}

DESCR = """\
Give Me Some Credit
-------------------
150,000 borrowers of a Kaggle competition (2011), 120,269 without missing values. Target: +1 no serious
delinquency in two years, -1 delinquent by 90 days or more (6.684 % of all, 8,357 of the complete rows).

Origin: https://www.kaggle.com/c/GiveMeSomeCredit. Competition data, not redistributable: equirecourse
fetches it and does not contain it.

Groups (sensitive_features): age_group (under 35, 16,464 of the complete rows; 35 or over).

Natural coding: 10 numbers, age among them. The paper's coding (paper=True) replaces the age by the group
and keeps 9 features; it is a reconstruction from the complete rows.

Traps. Utilisation reaches 50,708; the three counts of late payments hold 269 rows coded 96 or 98, which are
not counts; one age is 0. Scale robustly.
"""


def _read(path: Path) -> pd.DataFrame:
    """Read Kaggle's CSV or OpenML's ARFF, and check it against what is known of the data."""
    if path.suffix == ".arff":
        with path.open(encoding="utf-8") as file:
            frame = pd.DataFrame(arff.loadarff(file)[0])
        frame["SeriousDlqin2yrs"] = (frame["FinancialDistressNextTwoYears"] == b"Yes").astype(int)
    else:
        frame = pd.read_csv(path)
    missing = [name for name in ("SeriousDlqin2yrs", *COLUMNS) if name not in frame.columns]
    if missing:
        raise ValueError(f"it has no column {missing[0]!r}")
    frame = frame[["SeriousDlqin2yrs", *COLUMNS]]
    if len(frame) != N_ROWS:
        raise ValueError(f"it has {len(frame):,} rows, not {N_ROWS:,}")
    if int((frame["SeriousDlqin2yrs"] == 1).sum()) != N_DISTRESSED:
        raise ValueError(f"it has {int((frame['SeriousDlqin2yrs'] == 1).sum()):,} delinquents, not {N_DISTRESSED:,}")
    if len(frame.dropna()) != N_COMPLETE:
        raise ValueError(f"it has {len(frame.dropna()):,} complete rows, not {N_COMPLETE:,}")
    return frame.astype(dict.fromkeys(COLUMNS, float))


def fetch_givemecredit(
    *,
    paper: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    handle_missing: str = "drop",
) -> Bunch | tuple[Any, Any]:
    """Fetch Give Me Some Credit: borrowers who met no serious delinquency in two years (+1), or did (−1).

    The data may not be redistributed. It is read from the folder named by the environment variable
    ``EQUIRECOURSE_DATA`` (``givemecredit/cs-training.csv.gz``), else from the cache, else downloaded from
    OpenML (data set 46929). Kaggle's ``cs-training.csv`` put into the cache by hand is recognised.

    Parameters
    ----------
    paper : bool, default=False
        False gives 10 features under readable names; True gives the 9 features of the paper, under Kaggle's
        names.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects; arrays if False.
    data_home : path, default=None
        The cache folder, see :func:`get_data_home`.
    download_if_missing : bool, default=True
        If False, raise ``FileNotFoundError`` instead of using the network.
    handle_missing : {"drop", "keep"}, default="drop"
        Keep the 120,269 complete rows, or all 150,000 with NaN in ``monthly_income`` and ``dependents``.
        The paper's coding exists for complete rows only.

    Returns
    -------
    Bunch
        ``data``, ``target`` (+1 no delinquency, −1 delinquent), ``frame``, ``sensitive_features`` (always a
        DataFrame: ``age_group``, and ``paper``, ±1, if ``paper``), ``feature_names``, ``target_names`` (of
        −1 and +1), ``favorable_label``, ``actions`` (an :class:`~equirecourse.actions.ActionSet`: what a
        borrower can change), ``DESCR``.

    Raises
    ------
    OSError
        If the data can neither be found nor downloaded, or is damaged. The message names the way out.

    Notes
    -----
    The sha256 of a file in ``EQUIRECOURSE_DATA`` must be the known one. That of a download is *not known*:
    it is accepted if it has 150,000 rows, 10,026 delinquents and 120,269 complete rows, and its sha256 is
    then recorded in the cache, so that later changes are detected (trust on first use). The order of
    OpenML's rows was not compared with that of Kaggle's file, so a seed may select other people from a
    download than from ``EQUIRECOURSE_DATA``.

    In ``actions`` age, dependents and the counts of late payments cannot change, income can only rise, debts and
    credit lines can only fall, and a changed utilisation lies between 0 and 1. The costs of income, debts and
    utilisation are those of their standard deviation without the outliers: cut off at the 95th percentile.

    Examples
    --------
    >>> from equirecourse.datasets import fetch_givemecredit
    >>> people = fetch_givemecredit()  # doctest: +SKIP
    >>> people.data.shape  # doctest: +SKIP
    (120269, 10)
    """
    if handle_missing not in ("drop", "keep"):
        raise ValueError(f"handle_missing={handle_missing!r} is unknown; pass 'drop' or 'keep'.")
    if paper and handle_missing == "keep":
        raise ValueError("handle_missing='keep' does not go with paper=True, whose features are complete; pass 'drop'.")
    raw = read_remote(GIVEMECREDIT, _read, data_home=data_home, download_if_missing=download_if_missing)
    if handle_missing == "drop":
        raw = raw.dropna().reset_index(drop=True)
    young = raw["age"] < 35
    sensitive_features = pd.DataFrame({"age_group": two_groups(young, "under 35", "35 or over")})
    if paper:
        features = raw[[name for name in COLUMNS if name != "age"]]
        sensitive_features["paper"] = plus_minus(~young)
    else:
        features = raw[list(COLUMNS)].rename(columns=COLUMNS)
    return make_bunch(
        features=features,
        target=plus_minus(raw["SeriousDlqin2yrs"] == 0),
        target_name="no_delinquency",
        target_names=("delinquent", "no delinquency"),
        sensitive_features=sensitive_features,
        favorable_label=1,
        actions=partial(givemecredit_actions, paper=paper),
        descr=DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
