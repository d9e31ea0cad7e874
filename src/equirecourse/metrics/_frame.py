"""RecourseFrame: recourse by group, with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from equirecourse._plain import plain
from equirecourse._validation import check_generator, check_number, shown
from equirecourse.metrics import _text
from equirecourse.metrics._distribution import distances
from equirecourse.metrics._gap import Method, check_method, largest_difference, smallest_ratio
from equirecourse.metrics._rejected import Costs, RejectedCosts, shares, split_rejected
from equirecourse.metrics._resampling import (
    Interval,
    bootstrap_means,
    gap_interval,
    p_value,
    percentile_interval,
    permuted_gaps,
    share_p_value,
)
from equirecourse.metrics._verdict import Verdict, judge

__all__ = ["RecourseFrame"]

# Columns that difference() and ratio() leave out.
_NOT_COMPARED = ("people", "rejected", "measured", "unknown", "mean_low", "mean_high")
_UNDEFINED = Interval(float("nan"), float("nan"))


class RecourseFrame:
    r"""Cost of recourse by group: means, quantiles, the gap, and how much of it could be chance.

    A group's recourse is the mean cost over its rejected people, and the gap :math:`u` is the largest
    difference between two groups. Beside it stand

    * the **interval**: a percentile bootstrap, stratified by group, of the signed difference between the
      two groups furthest apart, folded at zero (it starts at 0 where it straddles zero);
    * the **noise floor**: the mean gap when the group labels are shuffled among the rejected;
    * the **p-value**: :math:`(1 + \#\{b : u_b \ge u\}) / (1 + B)` over the same :math:`B` shuffles.

    The attributes are those of fairlearn's ``MetricFrame``. The bootstrap and the shuffles run when a
    number that needs them is asked for, once, and depend neither on the order of the people nor on the
    names of the groups.

    Parameters
    ----------
    costs : array-like of shape (n_people,)
        What it costs each person to be accepted: infinite for people without recourse, not read for
        accepted people.
    sensitive_features : array-like, Series, DataFrame (pandas, polars, ...) or mapping of columns
        Group of each person. Several columns are crossed, and the index has one level for each.
    rejected : array-like of bool of shape (n_people,), optional
        Who was predicted unfavourable; people with a positive cost unless given.
    unknown : array-like of bool of shape (n_people,), optional
        Whose infinite cost says that no action was found, without proof that there is none. They are in no mean, they
        are at infinity in quantiles, and no verdict ignores them. Nobody unless given.
    measured : array-like of bool of shape (n_people,), optional
        Whose recourse was looked for, if that was a sample of the rejected drawn at random; all of them unless given.
    no_recourse_cost : float, optional
        A finite cost that stands for people without recourse in every number. Without it means are over the
        others, quantiles place them at infinity, and :attr:`verdict` says how many they are.
    quantiles : sequence of float
        Levels of the quantile columns: 0.9 is the column ``q90``.
    n_boot, n_permutations : int
        Number of bootstrap resamples and of shuffles.
    confidence : float
        Level of the intervals; ``1 - confidence`` is the level of the test.
    random_state : int, Generator, RandomState or None
        Seed. The same seed gives the same numbers.

    Warns
    -----
    UndefinedRecourseWarning
        If a group has no rejected people, or none with recourse: its mean and the gap are NaN.

    See Also
    --------
    recourse_gap : The gap alone.
    distribution_distances : Whole distributions instead of means.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse.metrics import RecourseFrame
    >>> sex = np.repeat(["female", "male"], 100)
    >>> costs = np.tile([0.0, 0.5, 1.0, 1.5], 50) * np.where(sex == "female", 1.6, 1.0)
    >>> frame = RecourseFrame(costs=costs, sensitive_features={"sex": sex}, random_state=0)
    >>> frame.by_group[["people", "rejected", "acceptance", "mean", "median"]]
            people  rejected  acceptance  mean  median
    sex
    female     100        75        0.25   1.6     1.6
    male       100        75        0.25   1.0     1.0
    >>> print(frame.verdict)
    gap of 0.6 (95 % interval 0.4... to 0.7..., noise floor 0.0..., p = 0.001): 'female' further ... 'male'
    """

    def __init__(
        self,
        *,
        costs: Any,
        sensitive_features: Any,
        rejected: Any = None,
        unknown: Any = None,
        measured: Any = None,
        no_recourse_cost: float | None = None,
        quantiles: Sequence[float] = (0.1, 0.25, 0.75, 0.9),
        n_boot: int = 1000,
        n_permutations: int = 1000,
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self._configure(quantiles, n_boot, n_permutations, confidence, random_state)
        self.no_recourse_cost = no_recourse_cost
        self._people: RejectedCosts = split_rejected(
            costs,
            sensitive_features=sensitive_features,
            rejected=rejected,
            unknown=unknown,
            measured=measured,
            no_recourse_cost=no_recourse_cost,
        )
        self._people.warn_undefined()

    def _configure(
        self, quantiles: Any, n_boot: int, n_permutations: int, confidence: float, random_state: Any
    ) -> None:
        """Check how the numbers are to be computed."""
        if isinstance(quantiles, str) or not isinstance(quantiles, Iterable):
            raise ValueError(f"quantiles must be a list of levels from 0 to 1, got {shown(quantiles)}.")
        self.quantiles = tuple(check_number(q, name="each of quantiles", low=0, high=1) for q in quantiles)
        self.n_boot = int(check_number(n_boot, name="n_boot", low=1, integer=True))
        self.n_permutations = int(check_number(n_permutations, name="n_permutations", low=1, integer=True))
        self.confidence = check_number(confidence, name="confidence", low=0, high=1)
        if self.confidence in (0.0, 1.0):
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}; 0.95 is usual.")
        if 1 / (1 + self.n_permutations) > self._level:
            raise ValueError(
                f"n_permutations={n_permutations} cannot give a p-value of {self._level:g} or less, so no "
                f"gap would ever be detected; use at least {math.ceil(round(1 / self._level, 9)) - 1}."
            )
        # Seeds drawn now, so that it does not matter which attribute is asked for first.
        self._seeds = check_generator(random_state).integers(2**63, size=4)

    @property
    def _level(self) -> float:
        """The level of the test, 1 - confidence without its rounding error."""
        return round(1 - self.confidence, 12)

    def _row(self, position: int | None = None) -> dict[str, float]:
        """One row of the table, without its intervals."""
        people = self._people
        names = ["median", *(f"q{100 * level:g}" for level in self.quantiles)]
        quantiles = people.quantiles([0.5, *self.quantiles], position)
        row = {**shares(people.counts(position)), "mean": people.mean(position)}
        return row | dict(zip(names, quantiles, strict=True))

    @cached_property
    def _points(self) -> pd.DataFrame:
        groups = self._people.groups
        return pd.DataFrame([self._row(k) for k in range(len(groups))], index=groups.index)

    @cached_property
    def _overall_points(self) -> pd.Series[float]:
        return pd.Series(self._row(), dtype=float)

    @cached_property
    def _draws(self) -> Costs:
        """Bootstrap means, a column per group."""
        return bootstrap_means(self._people.averaged, self.n_boot, np.random.default_rng(self._seeds[0]))

    @cached_property
    def _overall_draws(self) -> Costs:
        """Bootstrap means over everybody, one column."""
        return bootstrap_means([self._people.everybody], self.n_boot, np.random.default_rng(self._seeds[2]))

    @cached_property
    def _shuffled(self) -> Costs:
        rng = np.random.default_rng(self._seeds[1])
        return permuted_gaps(self._people.averaged, self.n_permutations, rng, self._people.everybody)

    @cached_property
    def _summary(self) -> tuple[pd.DataFrame, pd.Series[float]]:
        """The points with the intervals of the means next to them: by group, and over everybody."""
        table, overall = self._points.copy(), self._overall_points.copy()
        intervals = [percentile_interval(draws, self.confidence) for draws in self._draws.T]
        table["mean_low"], table["mean_high"] = zip(*intervals, strict=True)
        overall["mean_low"], overall["mean_high"] = percentile_interval(self._overall_draws[:, 0], self.confidence)
        columns = self._points.columns.tolist()
        after = columns.index("mean") + 1
        columns[after:after] = ["mean_low", "mean_high"]
        return table[columns], overall[columns]

    @property
    def by_group(self) -> pd.DataFrame:
        """One row per group: counts, shares, the mean, its interval, quantiles.

        ``people``, ``rejected`` and ``measured`` are counts. ``acceptance`` is a share of the people;
        ``without_recourse`` and ``unknown`` are shares of the measured, who are all of the rejected unless a sample was
        drawn. ``mean_low`` and ``mean_high`` are the bootstrap interval of the mean, NaN for a group with fewer than
        two costs to average.
        """
        return self._summary[0].copy()

    @property
    def overall(self) -> pd.Series[float]:
        """The columns of :attr:`by_group` over all people."""
        return self._summary[1].copy()

    @cached_property
    def gap(self) -> float:
        """Largest difference between the groups' mean costs; NaN if one of them is undefined."""
        return largest_difference(self._people.means, float("nan"), "between_groups")

    @cached_property
    def relative_gap(self) -> float:
        """The gap divided by the mean cost over all rejected: a gap can shrink because all costs do."""
        mean = self._overall_points["mean"]
        return self.gap / mean if mean > 0 else float("nan")

    @cached_property
    def interval(self) -> Interval:
        """Bootstrap interval ``(low, high)`` of the gap; NaN if one of the two groups has a single cost."""
        if np.isnan(self.gap):
            return _UNDEFINED
        return gap_interval(self._draws, self._far, self._near, self.confidence)

    @cached_property
    def noise_floor(self) -> float:
        """Mean gap when the group labels are shuffled among the rejected: what chance alone would make."""
        return float("nan") if np.isnan(self.gap) else float(self._shuffled.mean())

    @cached_property
    def p_value(self) -> float:
        """Chance of a gap at least as large if the group had nothing to do with the cost."""
        if np.isnan(self.gap):
            return float("nan")
        return p_value(self.gap, self._shuffled, self._people.largest)

    @cached_property
    def share_p_value(self) -> float:
        """Chance of shares without recourse that differ as much, whatever the unknown are; NaN if all have recourse."""
        people = self._people
        return share_p_value(
            people.excluded, people.excluded + people.unknown, people.measured, self.n_permutations,
            np.random.default_rng(self._seeds[3]),
        )  # fmt: skip

    @property
    def detectable(self) -> bool:
        """Whether the gap is above its noise floor, its p-value small *and* its interval clear of 0.

        Small means at most ``1 - confidence``. Shuffling alone would also call two groups of equal means
        different if the smaller one has the wider spread; the interval would not. A group with a single cost
        has no interval, and is no evidence of a gap.
        """
        return bool(self.gap > self.noise_floor and self.p_value <= self._level and self.interval.low > 0)

    @property
    def _far(self) -> int:
        return int(np.argmax(self._people.means))

    @property
    def _near(self) -> int:
        return int(np.argmin(self._people.means))

    @cached_property
    def distances(self) -> pd.DataFrame:
        """Distances between the groups' whole distributions, see :func:`distribution_distances`."""
        return distances(self._people)

    def difference(self, method: Method = "between_groups") -> pd.Series[float]:
        """Largest difference of each column, between two groups or from a group to everybody.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}
            What a group is compared with.

        Returns
        -------
        Series
            Of acceptance, without_recourse, mean, median and the quantiles; NaN where a group has no value.
            The entry ``mean`` is :attr:`gap` when comparing groups with each other.
        """
        return self._compare(largest_difference, method)

    def ratio(self, method: Method = "between_groups") -> pd.Series[float]:
        """Smallest ratio of each column, at most 1, between two groups or between a group and everybody.

        Parameters
        ----------
        method : {"between_groups", "to_overall"}
            What a group is compared with.

        Returns
        -------
        Series
            Of the columns of :meth:`difference`; NaN where a group has no value and where both values are 0.
        """
        return self._compare(smallest_ratio, method)

    def _compare(self, compare: Any, method: Method) -> pd.Series[float]:
        check_method(method)
        points, overall = self._points, self._overall_points
        return pd.Series(
            {
                column: compare(points[column].to_numpy(dtype=float), overall[column], method)
                for column in points.columns
                if column not in _NOT_COMPARED
            },
            dtype=float,
        )

    def judge(
        self, *, p_value: float | None = None, share_p_value: float | None = None, unit: str | None = None
    ) -> Verdict:
        """Whether there is a gap: yes, none that can be detected, or nobody can tell.

        Parameters
        ----------
        p_value, share_p_value : float, optional
            Corrected for several comparisons; :attr:`p_value` and :attr:`share_p_value` unless given.
        unit : str, optional
            What costs are counted in. With it the sentence is the short one of an audit.

        Returns
        -------
        Verdict
            Its ``state`` and its ``sentence``.
        """
        p = self.p_value if p_value is None else p_value
        detectable = bool(self.detectable and p <= self._level)
        return judge(
            self._people,
            detectable=detectable,
            interval_low=self.interval.low,
            share_p_value=self.share_p_value if share_p_value is None else share_p_value,
            level=self._level,
            means=_text.means_in_words(self, self._people, detectable, unit),
        )

    @property
    def verdict(self) -> str:
        """One plain sentence: is there a gap, how large, how sure, and who is further away."""
        return self.judge().sentence

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python values that any JSON writer takes.

        Returns
        -------
        dict
            Undefined values are None, infinite ones the string ``"inf"``; ``by_group`` and ``distances`` are
            lists of rows.
        """
        return dict(plain(_text.values(self, self._people)))

    def __repr__(self) -> str:
        return _text.as_text(self)

    def _repr_html_(self) -> str:
        return _text.as_html(self)
