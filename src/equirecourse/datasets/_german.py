"""Statlog German Credit: 1,000 loans, embedded."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import pandas as pd
from sklearn.utils import Bunch

from equirecourse.datasets._actions import german_actions
from equirecourse.datasets._bunch import embedded, make_bunch, plus_minus, two_groups

__all__ = ["load_german"]

# In the order of UCI's file. A dict maps UCI's codes to words; where the words have an order, it is theirs.
COLUMNS: dict[str, dict[str, str] | None] = {
    "status": {
        "A11": "<0 DM",
        "A12": "0-200 DM",
        "A13": ">=200 DM or salary assigned >=1y",
        "A14": "no checking account",
    },
    "month": None,
    "credit_history": {
        "A30": "no credits / all paid duly",
        "A31": "all credits at this bank paid duly",
        "A32": "existing credits paid duly till now",
        "A33": "past delay",
        "A34": "critical / credits elsewhere",
    },
    "purpose": {
        "A40": "car (new)",
        "A41": "car (used)",
        "A42": "furniture/equipment",
        "A43": "radio/television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "others",
    },
    "credit_amount": None,
    "savings": {
        "A61": "<100 DM",
        "A62": "100-500 DM",
        "A63": "500-1000 DM",
        "A64": ">=1000 DM",
        "A65": "unknown / none",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "<1 year",
        "A73": "1-4 years",
        "A74": "4-7 years",
        "A75": ">=7 years",
    },
    "investment_as_income_percentage": None,
    "personal_status": {
        "A91": "male: divorced/separated",
        "A92": "female: divorced/separated/married",
        "A93": "male: single",
        "A94": "male: married/widowed",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "residence_since": None,
    "property": {
        "A121": "real estate",
        "A122": "building society savings / life insurance",
        "A123": "car or other",
        "A124": "unknown / none",
    },
    "age": None,
    "installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "number_of_credits": None,
    "skill_level": {
        "A171": "unemployed / unskilled non-resident",
        "A172": "unskilled resident",
        "A173": "skilled employee / official",
        "A174": "management / self-employed / highly qualified",
    },
    "people_liable_for": None,
    "telephone": {"A191": "none", "A192": "yes, registered"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}

# Status and savings are amounts too, but their last word ("no checking account", ...) has no rank.
ORDERED = {"employment", "skill_level"}

DESCR = """\
Statlog German Credit
---------------------
1,000 loans of a German bank around 1975. Target: +1 good credit (700), -1 bad credit (300); bad ones were
oversampled by whoever collected the data.

Origin: Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository,
https://doi.org/10.24432/C5NC77. Licence: CC BY 4.0, attribution needed.

Groups (sensitive_features): sex (310 female), age_group (149 under 25), foreign_worker (37 "no"),
personal_status.

Natural coding: 19 attributes, words as pandas categoricals (employment and skill_level are ordered). UCI's
20th, personal_status, states the sex, so it is a sensitive feature and not a feature; age and
foreign_worker are both.

Traps. "sex" is doubtful: a corrected code table says that A92, read here as female, also covers single men,
so 310/690 is the usual split and not the truth. The paper's coding (paper=True) has 58 features: the
attributes one-hot, `age` as 1 from 25 years on, and the proxy `sex-age`, 1 for men of 25 or older, which
carries the group.
"""


def _codes() -> pd.DataFrame:
    """UCI's codes, one row per loan; the last column is 1 = good, 2 = bad."""
    return pd.read_csv(io.BytesIO(embedded("german.data.xz")), sep=" ", header=None, names=[*COLUMNS, "credit"])


def _in_words(codes: pd.DataFrame) -> pd.DataFrame:
    """All 20 attributes with words for codes."""
    columns: dict[str, Any] = {}
    for name, words in COLUMNS.items():
        if words is None:
            columns[name] = codes[name]
        else:
            columns[name] = pd.Categorical(
                codes[name].map(words), categories=list(words.values()), ordered=name in ORDERED
            )
    return pd.DataFrame(columns)


def _paper(codes: pd.DataFrame, male: pd.Series) -> pd.DataFrame:
    """Code the paper's 58 features: numbers first, then one column per code, in the order of their text."""
    numbers = codes[[name for name, words in COLUMNS.items() if words is None]].copy()
    numbers["age"] = (codes["age"] >= 25).astype(int)
    numbers["sex-age"] = (male & (codes["age"] >= 25)).astype(int)
    coded = [name for name, words in COLUMNS.items() if words is not None and name != "personal_status"]
    return pd.concat([numbers, pd.get_dummies(codes[coded])], axis=1).astype(float)


def load_german(*, paper: bool = False, return_X_y: bool = False, as_frame: bool = True) -> Bunch | tuple[Any, Any]:
    """Load the German credit data: 1,000 loans, good (+1) or bad (−1).

    The data is embedded in the package (UCI, CC BY 4.0).

    Parameters
    ----------
    paper : bool, default=False
        False gives 19 attributes in words and numbers; True gives the 58 numeric features of the paper.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects. If False, ``data`` is an array: of floats if ``paper``, else of Python objects,
        because words and numbers stand side by side.

    Returns
    -------
    Bunch
        ``data``, ``target`` (+1 good, −1 bad), ``frame``, ``sensitive_features`` (always a DataFrame:
        ``sex``, ``age_group``, ``foreign_worker``, ``personal_status``, and ``paper``, ±1, if ``paper``),
        ``feature_names``, ``target_names`` (of −1 and +1), ``favorable_label``, ``actions`` (an
        :class:`~equirecourse.actions.ActionSet`: what an applicant can change), ``DESCR``.

    Notes
    -----
    UCI's ``personal_status`` states the sex. It is left out of ``data`` and given in
    ``sensitive_features``, so that a model cannot read the sex. ``age`` and ``foreign_worker`` are in both;
    drop them from ``data`` if a model must not use them.

    In ``actions`` age, foreign worker, dependants, credit history and purpose cannot change; years in a job and at
    an address, and skills, can only rise; nobody can move to "unknown". The paper's coding has no order among
    labels, so that the years in a job and the skills may go either way there.

    Examples
    --------
    >>> from equirecourse.datasets import load_german
    >>> german = load_german()
    >>> german.data.shape
    (1000, 19)
    >>> german.data["employment"].min()
    'unemployed'
    >>> german.sensitive_features["sex"].value_counts().to_dict()
    {'male': 690, 'female': 310}
    >>> X, y = load_german(paper=True, return_X_y=True)
    >>> X.shape
    (1000, 58)
    """
    codes = _codes()
    words = _in_words(codes)
    male = codes["personal_status"] != "A92"
    sensitive_features = pd.DataFrame(
        {
            "sex": two_groups(male, "male", "female"),
            "age_group": two_groups(codes["age"] < 25, "under 25", "25 or over"),
            "foreign_worker": words["foreign_worker"].astype(object),
            "personal_status": words["personal_status"].astype(object),
        }
    )
    if paper:
        features = _paper(codes, male)
        sensitive_features["paper"] = plus_minus(male)
    else:
        features = words.drop(columns="personal_status")
    return make_bunch(
        features=features,
        target=plus_minus(codes["credit"] == 1),
        target_name="credit",
        target_names=("bad credit", "good credit"),
        sensitive_features=sensitive_features,
        favorable_label=1,
        actions=partial(german_actions, paper=paper),
        descr=DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
