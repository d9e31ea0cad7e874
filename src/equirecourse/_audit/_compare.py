"""Two models and the same people: what changed, and how sure that is."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from equirecourse._audit._cheats import cheats
from equirecourse._audit._document import Attribute, ComparedAttribute, Comparison, Gap, Summary
from equirecourse.metrics._resampling import reduction_interval

__all__ = ["compare"]

Array = NDArray[np.float64]


def compare(before: Summary, after: Summary, costs: tuple[Array, Array], groups: pd.DataFrame,
            placebo: Summary | None, n_boot: int, seed: int,
            islands: tuple[float, float] | None = None) -> Comparison:  # fmt: skip
    """The section of a document that sets two audits side by side.

    Parameters
    ----------
    before, after : Summary
        Audits of the same people and attributes.
    costs : two arrays
        Costs of all people under each model, NaN for accepted people.
    groups : DataFrame
        Groups of all people as text, a column per attribute.
    placebo : Summary or None
        Of a model fitted anew without the method.
    n_boot, seed : int
        Of the interval.
    islands : (float, float) or None
        Share of counterfactuals far from any accepted person, before and after.

    Returns
    -------
    Comparison
        One entry per attribute, with what each of four cheats would look like, and the models' accuracy and acceptance.
    """
    sides = {"before": before, "after": after, **({} if placebo is None else {"placebo": placebo})}
    attributes = []
    for place, section in enumerate(before.attributes):
        members = groups[section.name].to_numpy()
        attributes.append(
            ComparedAttribute(
                name=section.name,
                reduction=section.gap - after.attributes[place].gap,
                reduction_interval=reduction_interval(*costs, members, n_boot, seed),
                **{side: _gap(summary.attributes[place]) for side, summary in sides.items()},
                cheats=cheats(*costs, members, islands),
            )
        )
    return Comparison(attributes=attributes, models={side: summary.model for side, summary in sides.items()})


def _gap(section: Attribute) -> Gap:
    names = ("gap", "interval", "noise_floor", "relative_gap", "p_value", "state", "verdict")
    rejected = {row.name: row.rejected for row in section.by_group}
    return Gap(**{name: getattr(section, name) for name in names}, rejected=rejected)
