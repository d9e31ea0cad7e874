"""What people can change in each data set: its columns say what is possible, this file what is true.

The principle: an action is something a person can do from now on and bring to the next application. What has
happened has happened; who a person is, is no action; and nobody acts towards a column that says "unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from equirecourse.actions import ActionSet

__all__ = ["credit_actions", "german_actions", "givemecredit_actions", "propublica_actions", "toy_actions"]


def _allow(actions: ActionSet, allowed: Mapping[str, Iterable[str]]) -> ActionSet:
    for name, labels in allowed.items():
        actions = actions.replace(name, allowed=tuple(labels))
    return actions


def german_actions(data: pd.DataFrame, *, paper: bool) -> ActionSet:
    """Terms of the loan, balances, household and job; neither the person nor the past."""
    # The purpose is what the money is for: naming another one is another application, or a false statement.
    # Dependants (people_liable_for) are a matter of family. sex-age is the paper's proxy of the group.
    immutable = ["age", "foreign_worker", "people_liable_for", "credit_history", "purpose"]
    # Loans with this bank can be paid back; the bank's yes to a further one cannot be an action towards its yes.
    decrease_only = ["number_of_credits"]
    # Years at an address only grow.
    increase_only = ["residence_since"]
    if paper:
        # Columns without an order: years in a job and skills cannot be made one-way, but their lowest label,
        # unemployed, can be closed.
        actions = ActionSet.from_frame(
            data, immutable=[*immutable, "sex-age"], increase_only=increase_only, decrease_only=decrease_only
        )
        return _allow(
            actions,
            {
                "status": ["A11", "A12", "A13"],
                "savings": ["A61", "A62", "A63", "A64"],
                "employment": ["A72", "A73", "A74", "A75"],
                "skill_level": ["A172", "A173", "A174"],
                "property": ["A121", "A122", "A123"],
                "housing": ["A151", "A152"],
            },
        )
    labels = {name: list(data[name].cat.categories) for name in ("status", "savings", "property", "housing")}
    # Balances have an order. An account that does not exist, or that nobody knows of, holds nothing: it comes first.
    nothing = {"status": "no checking account", "savings": "unknown / none"}
    actions = ActionSet.from_frame(
        data,
        ordered={name: [zero, *(label for label in labels[name] if label != zero)] for name, zero in nothing.items()},
        immutable=immutable,
        # Years in a job only grow, skills are not unlearnt.
        increase_only=[*increase_only, "employment", "skill_level"],
        decrease_only=decrease_only,
    )
    return _allow(
        actions,
        {
            # One can open an account and save; one cannot act towards being unknown to the bank.
            "status": [label for label in labels["status"] if label != "no checking account"],
            "savings": [label for label in labels["savings"] if label != "unknown / none"],
            "property": [label for label in labels["property"] if label != "unknown / none"],
            # Living for free is somebody else's gift.
            "housing": [label for label in labels["housing"] if label != "for free"],
        },
    )


def credit_actions(data: pd.DataFrame, *, paper: bool) -> ActionSet:
    """Spending and paying from now on, and education; not the record of late payments."""
    if paper:
        return ActionSet.from_frame(
            data,
            # Late payments stay on record, whatever one does now (as in Ustun et al., 2019).
            immutable=["Age", "TotalOverdueCounts", "TotalMonthsOverdue", "HistoryOfOverduePayments"],
            increase_only=["EducationLevel"],
            # Amounts are rounded to tens. Bills, payments and months of low or high spending move with the window of
            # six months: they are habits, and may go either way.
            steps={name: 10 for name in data.columns if "Amount" in name},
        )
    older = [name for name in data.columns if name.endswith(("_aug", "_jul", "_jun", "_may", "_apr"))]
    return ActionSet.from_frame(
        data,
        # The bank sets the limit. Of the six months, five are over; the newest, September, is the one that a client
        # lives through anew before applying again.
        immutable=["age", "limit_balance", *older],
        increase_only=["education", "paid_sep"],  # degrees are not returned; one can pay more
        decrease_only=["repayment_status_sep", "bill_sep"],  # catch up with arrears, spend less
        # A bill goes down to nothing; some people have a credit, but nobody needs to aim at one.
        bounds={"bill_sep": (0, float(data["bill_sep"].max()))},
    )


def givemecredit_actions(data: pd.DataFrame, *, paper: bool) -> ActionSet:
    """Income, debts and credit lines; neither age and family nor the record of late payments."""
    if paper:
        late = [name for name in data.columns if "Late" in name or "PastDue" in name]
        immutable = [*late, "NumberOfDependents"]
        income, utilization, debts = "MonthlyIncome", "RevolvingUtilizationOfUnsecuredLines", "DebtRatio"
        lines = ["NumberOfOpenCreditLinesAndLoans", "NumberRealEstateLoansOrLines"]
    else:
        immutable = ["age", "dependents", *(name for name in data.columns if name.startswith("times_"))]
        income, utilization, debts = "monthly_income", "revolving_utilization", "debt_ratio"
        lines = ["open_credit_lines", "real_estate_loans"]
    # A few people have a utilisation of 50,708 or a debt ratio of 61,106, and would make a standard deviation so large
    # that everybody else's change costs nothing: cut off at the 95th percentile, it is that of ordinary people. Without
    # an income the ratio is an amount of money, so only people with an income count.
    skewed = data[[utilization, debts, income]].dropna()
    spread = skewed.clip(upper=skewed.quantile(0.95), axis=1).std()
    return ActionSet.from_frame(
        data,
        immutable=immutable,
        increase_only=[income],
        # Credit lines can be closed and debts paid; new ones need another lender's yes.
        decrease_only=[debts, *lines],
        # A share of the credit lines; people above 1 start outside, and may come back.
        bounds={utilization: (0, 1)},
        costs={name: 1.0 / float(spread[name]) for name in (utilization, debts, income)},
    )


def propublica_actions(data: pd.DataFrame, *, paper: bool) -> ActionSet:
    """Nothing: age, race, sex, the charge and everything before it are no actions.

    That a risk score leaves a defendant nothing to do is a finding about the score, not a gap in this action set.
    """
    prefixes = ("age_cat", "c_charge_degree", "c_charge_desc") if paper else ()
    blocks = {prefix: [name for name in data.columns if name.startswith(f"{prefix}_")] for prefix in prefixes}
    in_blocks = {name for columns in blocks.values() for name in columns}
    others = [name for name in data.columns if name not in in_blocks]
    return ActionSet.from_frame(data, immutable=[*others, *blocks], one_hot=blocks)


def toy_actions(data: pd.DataFrame) -> ActionSet:
    """Anything, anywhere: the cost of a move in the plane is its length."""
    return ActionSet.from_frame(data, bounds=dict.fromkeys(data.columns, (None, None)), costs="unit")
