"""Default of Credit Card Clients (Taiwan, 2005): 30,000 cards, embedded."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from equirecourse.datasets._actions import credit_actions
from equirecourse.datasets._bunch import embedded, make_bunch, plus_minus, two_groups

__all__ = ["load_credit"]

# The newest month first, as in UCI's file, where the statuses are PAY_0, PAY_2, ..., PAY_6.
MONTHS = ("sep", "aug", "jul", "jun", "may", "apr")
STATUS = [f"repayment_status_{month}" for month in MONTHS]
BILL = [f"bill_{month}" for month in MONTHS]
PAID = [f"paid_{month}" for month in MONTHS]
COLUMNS = ["limit_balance", "sex", "education", "marriage", "age", *STATUS, *BILL, *PAID, "default"]

EDUCATION = {1: "graduate school", 2: "university", 3: "high school", 4: "other"}
MARRIAGE = {1: "married", 2: "single", 3: "other"}

NT_DOLLARS_PER_DOLLAR = 32.75

DESCR = """\
Default of Credit Card Clients
------------------------------
30,000 credit cards in Taiwan, April to September 2005. Target: +1 no default in October (23,364), -1 default
(6,636, or 22.12 %).

Origin: Yeh, I.-C. (2009). Default of Credit Card Clients. UCI Machine Learning Repository,
https://doi.org/10.24432/C55S3H; described in Yeh & Lien (2009), Expert Systems with Applications 36(2).
Licence: CC BY 4.0, attribution needed.

Groups (sensitive_features): sex, education, graduate (graduate school or other), marriage, married,
age_group.

Natural coding: 21 whole numbers, amounts in New Taiwan dollars, months from September (the newest) to April.
limit_balance; education (3 graduate school, 2 university, 1 high school, 0 other or undocumented); age;
repayment_status_* (-2 no use, -1 paid in full, 0 revolving, 1 to 8 months late); bill_* (negative: credit);
paid_*. Sex and marriage are left out of the features.

The paper's coding (paper=True) has 12 features derived from these: amounts in US dollars at 32.75, rounded
to tens; counts of months over the half year; lateness. Its group is married (+1) against everybody else
(-1).

Traps. 54 people have the undocumented marriage 0, and 345 the undocumented education 0, 5 or 6: both are the
group "undocumented". Bills reach 1,664,089: scale before you fit.
"""


def _raw() -> pd.DataFrame:
    """UCI's columns without the row number, under readable names."""
    values = np.load(io.BytesIO(embedded("credit.npy.xz")), allow_pickle=False)
    return pd.DataFrame(values.astype(np.int64), columns=COLUMNS)


def _education_level(raw: pd.DataFrame) -> pd.Series:
    """3 graduate school, 2 university, 1 high school, 0 other or undocumented: more is more."""
    return raw["education"].map({1: 3, 2: 2, 3: 1}).fillna(0).astype(np.int64)


def _in_dollars(amounts: pd.DataFrame) -> NDArray[np.float64]:
    """US dollars, rounded to tens."""
    return np.asarray(np.round(amounts.to_numpy(dtype=np.float64) / NT_DOLLARS_PER_DOLLAR, -1))


def _paper(raw: pd.DataFrame) -> pd.DataFrame:
    """Derive the paper's 12 features, which are those of Ustun et al. (2019), from UCI's columns."""
    bills, payments = _in_dollars(raw[BILL]), _in_dollars(raw[PAID])
    spending = bills / _in_dollars(raw[["limit_balance"]])
    months_late = raw[STATUS].to_numpy().clip(min=0)
    late = months_late > 0
    # An overdue spell is a run of late months: it begins where a late month has no late neighbour before it.
    spells = late[:, 0].astype(int) + (late[:, 1:] & ~late[:, :-1]).sum(axis=1)
    return pd.DataFrame(
        {
            "Age": raw["age"],
            "EducationLevel": _education_level(raw),
            "MaxBillAmountOverLast6Months": bills.max(axis=1).clip(min=0),
            "MaxPaymentAmountOverLast6Months": payments.max(axis=1),
            # Paid more than the bill of the same month; a negative bill with no payment counts too.
            "MonthsWithZeroBalanceOverLast6Months": (payments > bills).sum(axis=1),
            "MonthsWithLowSpendingOverLast6Months": (spending < 0.2).sum(axis=1),
            "MonthsWithHighSpendingOverLast6Months": (spending > 0.8).sum(axis=1),
            "MostRecentBillAmount": bills[:, 0].clip(min=0),
            "MostRecentPaymentAmount": payments[:, 0],
            "TotalOverdueCounts": spells,
            "TotalMonthsOverdue": months_late.sum(axis=1),
            "HistoryOfOverduePayments": late.any(axis=1),
        }
    ).astype(float)


def load_credit(*, paper: bool = False, return_X_y: bool = False, as_frame: bool = True) -> Bunch | tuple[Any, Any]:
    """Load the credit card data: 30,000 clients who paid (+1) or defaulted (−1) next month.

    The data is embedded in the package (UCI, CC BY 4.0).

    Parameters
    ----------
    paper : bool, default=False
        False gives UCI's columns under readable names; True gives the 12 numeric features of the paper.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=True
        Return pandas objects; arrays if False.

    Returns
    -------
    Bunch
        ``data``, ``target`` (+1 no default, −1 default), ``frame``, ``sensitive_features`` (always a
        DataFrame: ``sex``, ``education``, ``graduate``, ``marriage``, ``married``, ``age_group``, and
        ``paper``, ±1, if ``paper``), ``feature_names``, ``target_names`` (of −1 and +1),
        ``favorable_label``, ``actions`` (an :class:`~equirecourse.actions.ActionSet`: what a client can
        change), ``DESCR``.

    Notes
    -----
    Sex and marriage are in ``sensitive_features`` only. Education and age are features as well: education
    as a level from 0 (other or undocumented) to 3 (graduate school), since UCI's codes do not grow with
    education.

    In ``actions`` the limit, the age and the five older months stay as they are; a client can pay more, spend
    less, catch up with arrears in the newest month, and learn. In the paper's coding the amounts and the months
    of low or high spending can change, the record of late payments cannot.

    Examples
    --------
    >>> from equirecourse.datasets import load_credit
    >>> credit = load_credit()
    >>> credit.data.shape
    (30000, 21)
    >>> credit.data.loc[0, ["limit_balance", "bill_sep", "paid_sep"]].to_list()
    [20000, 3913, 0]
    >>> credit.sensitive_features["graduate"].value_counts().to_dict()
    {'other': 19415, 'graduate school': 10585}
    >>> load_credit(paper=True).feature_names[:2]
    ['Age', 'EducationLevel']
    """
    raw = _raw()
    sensitive_features = pd.DataFrame(
        {
            "sex": two_groups(raw["sex"] == 1, "male", "female"),
            "education": raw["education"].map(EDUCATION).fillna("undocumented").astype(object),
            "graduate": two_groups(raw["education"] == 1, "graduate school", "other"),
            "marriage": raw["marriage"].map(MARRIAGE).fillna("undocumented").astype(object),
            "married": two_groups(raw["marriage"] == 1, "married", "not married"),
            "age_group": two_groups(raw["age"] < 25, "under 25", "25 or over"),
        }
    )
    if paper:
        features = _paper(raw)
        sensitive_features["paper"] = plus_minus(raw["marriage"] == 1)
    else:
        features = raw.drop(columns=["sex", "marriage", "default"]).assign(education=_education_level(raw))
    return make_bunch(
        features=features,
        target=plus_minus(raw["default"] == 0),
        target_name="no_default",
        target_names=("default", "no default"),
        sensitive_features=sensitive_features,
        favorable_label=1,
        actions=partial(credit_actions, paper=paper),
        descr=DESCR,
        return_X_y=return_X_y,
        as_frame=as_frame,
    )
