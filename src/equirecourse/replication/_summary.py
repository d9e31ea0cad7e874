"""From runs to the numbers of a table: reductions of the mean gap, with intervals over the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Reduction", "reduction", "summarise_real_gaps", "summarise_tables"]

_RESAMPLES = 2000
_ROUNDING = 1e-6
Reduction = dict[str, Any]


def reduction(runs: pd.DataFrame, part: str, *, after: str = "after", gap: str = "gap") -> Reduction:
    """Reduction of the mean gap in per cent, as the paper computes it, with a bootstrap interval over the runs.

    Parameters
    ----------
    runs : DataFrame
        One row per run.
    part : {"train", "test"}
        Whose gaps.
    after : {"after", "placebo"}
        What is compared with the plain model.
    gap : str
        Which gap.

    Returns
    -------
    dict
        ``value``, ``low``, ``high`` (95 %), ``runs`` that count and ``degenerate`` ones, which have no gap before or
        after and cannot be averaged. NaN where fewer than two runs count.
    """
    before = runs[f"before_{part}_{gap}"].to_numpy(dtype=float)
    later = runs[f"{after}_{part}_{gap}"].to_numpy(dtype=float)
    counts = np.isfinite(before) & np.isfinite(later)
    before, later = before[counts], later[counts]
    found: Reduction = {"runs": len(before), "degenerate": int((~counts).sum())}
    if len(before) == 0 or before.mean() == 0:
        return found | {"value": np.nan, "low": np.nan, "high": np.nan}
    value = 100 * (1 - later.mean() / before.mean())
    if len(before) < 2:
        return found | {"value": value, "low": np.nan, "high": np.nan}
    drawn = np.random.default_rng(0).integers(len(before), size=(_RESAMPLES, len(before)))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 100 * (1 - later[drawn].mean(axis=1) / before[drawn].mean(axis=1))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return found | {"value": value, "low": float(low), "high": float(high)}


def summarise_tables(runs: pd.DataFrame, gaps: dict[str, str]) -> pd.DataFrame:
    """One row per cell of a table, protocol and ν: reductions on train and test, of the method and of its placebo.

    Parameters
    ----------
    runs : DataFrame
        All runs of a table.
    gaps : dict
        Protocol → the gap that it looks at.
    """
    rows = []
    for (dataset, model, protocol, bound), some in runs.groupby(
        ["dataset", "model", "protocol", "bound"], sort=False
    ):  # fmt: skip
        row: dict[str, Any] = {"dataset": dataset, "model": model, "protocol": protocol, "bound": bound}
        for part in ("train", "test"):
            for side in ("after", "placebo"):
                found = reduction(some, part, after=side, gap=gaps[str(protocol)])
                row |= {f"{side}_{part}_{name}": value for name, value in found.items()}
            for name in ("accuracy", "acceptance", "noise_floor", "gap", "relative_gap"):
                for side in ("before", "after"):
                    row[f"{side}_{part}_{name}"] = float(some[f"{side}_{part}_{name}"].mean())
        row["runs"] = len(some)
        row["degenerate"] = int(some["degenerate"].sum())
        row["converged"] = float(some["converged"].mean()) if "converged" in some else np.nan
        rows.append(row)
    return pd.DataFrame(rows)


def summarise_real_gaps(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per group and method: means over the splits, and whether the gap is at its floor, and the price."""
    columns = ["gap", "noise_floor", "relative_gap", "accuracy", "acceptance"]
    names = [f"{side}_test_{name}" for side in ("before", "placebo", "after") for name in columns]
    kept = runs[runs["model"] != "plain"]
    parts = kept.groupby(["dataset", "group", "model"], sort=False)
    # A split without a gap leaves the mean undefined: it is not averaged away.
    table = pd.DataFrame({name: parts[name].agg("mean").where(parts[name].count() == parts.size()) for name in names})
    table = table.reset_index()
    table["splits"] = parts.size().to_numpy()
    table["had_gap"] = table["before_test_gap"] > 2 * table["before_test_noise_floor"]
    # A model of one yes-or-no feature is equally far from everybody, but for rounding errors.
    table["had_gap"] &= table["before_test_relative_gap"] > _ROUNDING
    table["price"] = table["before_test_accuracy"] - table["after_test_accuracy"]
    table["at_floor"] = table["after_test_gap"] <= table["after_test_noise_floor"]
    table["below_twice_floor"] = table["after_test_gap"] <= 2 * table["after_test_noise_floor"]
    table["ratio_falls"] = table["after_test_relative_gap"] < table["before_test_relative_gap"]
    table["within_budget"] = table["price"] <= 0.01
    return table
