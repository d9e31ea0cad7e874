"""ProPublica's COMPAS data: 6,167 defendants, fetched."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from equirecourse.datasets._actions import propublica_actions
from equirecourse.datasets._bunch import make_bunch, plus_minus, two_groups
from equirecourse.datasets._download import read_remote
from equirecourse.datasets._registry import PROPUBLICA

__all__ = ["fetch_propublica"]

N_ROWS, N_REOFFENDED, N_FILTERED = 7_214, 3_251, 6_167

COUNTS = ["juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
# Only these are read: ProPublica's file also holds names and birth dates, which nobody needs here.
COLUMNS = [
    *("sex", "age", "age_cat", "race", *COUNTS, "c_charge_degree", "c_charge_desc", "two_year_recid"),
    *("days_b_screening_arrest", "is_recid", "score_text"),
]

DESCR = """\
ProPublica's COMPAS data
------------------------
6,167 people arrested in Broward County, Florida, 2013 and 2014. Target: +1 does not reoffend within two years
(3,358), -1 reoffends (2,809).

Origin: Larson, Mattu, Kirchner & Angwin (2016), https://github.com/propublica/compas-analysis. The
repository states no licence: equirecourse fetches the data and does not contain it.

Rows: of 7,214 (45.07 % of whom reoffend), those screened within 30 days of the arrest, with a known
outcome, a charge that is a felony or a misdemeanour, and a score (6,172: ProPublica's own filter), and with
a described charge (6,167).

Groups (sensitive_features): race, african_american (African-American, 3,173, or other), sex (1,173 female),
age_group (1,347 under 25).

Natural coding: 6 numbers: age, three counts of juvenile offences, priors_count, felony (1 if charged with
one).

Traps. In the paper's coding (paper=True) the target is +1 = REOFFENDS, so favorable_label is -1 there. It
has 401 features, of which 389 are charges one-hot, and keeps the proxies `race` (1 if Caucasian) and
`sex-race` (1 for Caucasian men). Being arrested again is not the same as reoffending, and is not measured
alike for every group.
"""


def _read(path: Path) -> pd.DataFrame:
    """Read the columns that are needed, and check them against what is known of the data."""
    frame = pd.read_csv(path, usecols=lambda name: name in COLUMNS)
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ValueError(f"it has no column {missing[0]!r}")
    if len(frame) != N_ROWS:
        raise ValueError(f"it has {len(frame):,} rows, not {N_ROWS:,}")
    if int((frame["two_year_recid"] == 1).sum()) != N_REOFFENDED:
        raise ValueError(f"it has {int((frame['two_year_recid'] == 1).sum()):,} reoffenders, not {N_REOFFENDED:,}")
    if len(_filter(frame)) != N_FILTERED:
        raise ValueError(f"it has {len(_filter(frame)):,} rows that pass ProPublica's filter, not {N_FILTERED:,}")
    return frame


def _filter(raw: pd.DataFrame) -> pd.DataFrame:
    """ProPublica's filter, and a described charge."""
    keep = (
        raw["days_b_screening_arrest"].between(-30, 30)
        & (raw["is_recid"] != -1)
        & raw["c_charge_degree"].isin(["F", "M"])
        & raw["score_text"].notna()
        & raw["c_charge_desc"].notna()
    )
    return raw[keep].reset_index(drop=True)


def _paper(raw: pd.DataFrame) -> pd.DataFrame:
    """Code the paper's 401 features."""
    caucasian = raw["race"] == "Caucasian"
    numbers = pd.DataFrame({"age": raw["age"], "race": caucasian.astype(int)})
    numbers[COUNTS] = raw[COUNTS]
    numbers["sex-race"] = (caucasian & (raw["sex"] == "Male")).astype(int)
    words = pd.get_dummies(raw[["age_cat", "c_charge_degree", "c_charge_desc"]])
    return pd.concat([numbers, words], axis=1).astype(float)


def fetch_propublica(
    *,
    paper: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[Any, Any]:
    """Fetch ProPublica's COMPAS data: defendants who do not reoffend within two years (+1), or do (−1).

    The data comes without a licence. It is read from the folder named by the environment variable
    ``EQUIRECOURSE_DATA`` (``propublica/compas_two_years_noid.csv.gz``), else from the cache, else
    downloaded from ProPublica's repository.

    Parameters
    ----------
    paper : bool, default=False
        False gives 6 numeric features; True gives the 401 features of the paper **and the paper's target,
        where +1 is reoffends**: ``favorable_label`` is then −1.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects; arrays if False.
    data_home : path, default=None
        The cache folder, see :func:`get_data_home`.
    download_if_missing : bool, default=True
        If False, raise ``FileNotFoundError`` instead of using the network.

    Returns
    -------
    Bunch
        ``data``, ``target``, ``frame``, ``sensitive_features`` (always a DataFrame: ``race``,
        ``african_american``, ``sex``, ``age_group``, and ``paper``, ±1, if ``paper``), ``feature_names``,
        ``target_names`` (of −1 and +1), ``favorable_label`` (+1, but −1 if ``paper``),
        ``actions`` (an :class:`~equirecourse.actions.ActionSet` in which nothing can change), ``DESCR``.

    Raises
    ------
    OSError
        If the data can neither be found nor downloaded, or is damaged. The message names the way out.

    Notes
    -----
    The sha256 of a file in ``EQUIRECOURSE_DATA`` must be the known one. That of a download is *not known*:
    it is accepted if it has 7,214 rows of which 3,251 reoffend and 6,167 pass the filter, and its sha256 is
    then recorded in the cache, so that later changes are detected (trust on first use). ProPublica's file
    holds names and birth dates; they are never read, but they are in the cached file.

    Age, race, sex, the charge and the record before it are no actions, so ``actions`` leaves a defendant nothing
    to do. Whoever wants distances to the boundary all the same does without an action set.

    Examples
    --------
    >>> from equirecourse.datasets import fetch_propublica
    >>> people = fetch_propublica()  # doctest: +SKIP
    >>> people.data.shape  # doctest: +SKIP
    (6167, 6)
    """
    raw = _filter(read_remote(PROPUBLICA, _read, data_home=data_home, download_if_missing=download_if_missing))
    reoffends = raw["two_year_recid"] == 1
    male = raw["sex"] == "Male"
    sensitive_features = pd.DataFrame(
        {
            "race": raw["race"].astype(object),
            "african_american": two_groups(raw["race"] == "African-American", "African-American", "other"),
            "sex": two_groups(male, "male", "female"),
            "age_group": two_groups(raw["age"] < 25, "under 25", "25 or over"),
        }
    )
    if paper:
        features = _paper(raw)
        sensitive_features["paper"] = plus_minus(male)
    else:
        features = raw[["age", *COUNTS]].assign(felony=(raw["c_charge_degree"] == "F").astype(int))
    return make_bunch(
        features=features,
        target=plus_minus(reoffends if paper else ~reoffends),
        target_name="two_year_recid" if paper else "no_reoffence",
        target_names=("does not reoffend", "reoffends") if paper else ("reoffends", "does not reoffend"),
        sensitive_features=sensitive_features,
        favorable_label=-1 if paper else 1,
        actions=partial(propublica_actions, paper=paper),
        descr=DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
