"""Metrics of recourse: costs and groups in, numbers out.

A *cost* is what it takes a rejected person to get a yes, infinite for a person without recourse. A group's
recourse is the mean cost over its rejected people, and the gap is the largest difference between two
groups.

* :class:`RecourseFrame` is the whole answer: every group, the gap, its interval, its noise floor, its
  p-value;
* :func:`recourse_gap` and :func:`rejection_weighted_gap` are single numbers;
* :class:`SummaryFrame` is the same answer from :class:`CostSummary`, which adds up over parts of the people that are
  never in memory together;
* :func:`distribution_distances` compares whole distributions, and :func:`transport_gap` sums that up in a number;
* the other functions are metrics of one group, which fairlearn's ``MetricFrame`` can slice.
"""

from equirecourse.metrics._cells import RELATIVE_ERROR
from equirecourse.metrics._distribution import distribution_distances
from equirecourse.metrics._frame import RecourseFrame
from equirecourse.metrics._functions import (
    burden_cost,
    improvability_score,
    mean_recourse_cost,
    median_recourse_cost,
    no_recourse_rate,
    rejected_count,
    rejection_weighted_cost,
)
from equirecourse.metrics._gap import recourse_gap, rejection_weighted_gap
from equirecourse.metrics._resampling import Interval
from equirecourse.metrics._summary import CostSummary
from equirecourse.metrics._summary_frame import SummaryFrame
from equirecourse.metrics._transport import TransportGap, transport_gap
from equirecourse.metrics._verdict import State, Verdict

__all__ = [
    "RELATIVE_ERROR",
    "CostSummary",
    "Interval",
    "RecourseFrame",
    "State",
    "SummaryFrame",
    "TransportGap",
    "Verdict",
    "burden_cost",
    "distribution_distances",
    "improvability_score",
    "mean_recourse_cost",
    "median_recourse_cost",
    "no_recourse_rate",
    "recourse_gap",
    "rejected_count",
    "rejection_weighted_cost",
    "rejection_weighted_gap",
    "transport_gap",
]
