r"""What equalizers minimise besides their loss: the distance between the groups' distributions of cost.

From scores :math:`f_i` (above zero is a yes), prices :math:`\rho_i` (cost per unit of missing score) and weights
:math:`m_i` that add up to one:

==================================================================  ===============================================
:math:`\tau \propto` the (smoothed) median of :math:`|f_i|`          how soft a decision is
:math:`p_i = \sigma(-f_i/\tau),\quad q_i = m_i p_i`                 how far a person is rejected
:math:`c_i = \rho_i\,\tau\,\mathrm{softplus}(-f_i/\tau)`            what a yes costs them
:math:`\sum_i q_i\,[K((1 - c_i/2s)/2h) - \frac34] = 0`              s, half of the (smoothed) upper quartile
:math:`F_g(t) = \sum_{i\in g} q_i\,\sigma((t - c_i/s)/h)\,/\,Q_g`   the distribution of group g; F, of everybody
:math:`D = \sum_g \int_0^4 (F_g - F)^2\,dt`                         their distance
==================================================================  ===============================================

K is a step that is rounded off, :math:`\frac12 (1 + x/\sqrt{1 + x^2})`: as steep as σ there, of no exponentials, and
nowhere so flat that a quantile would be lost in a gap between people.

:math:`R = \sum_g m_g\,(r_g - r_g^0)^2` is the drift of the groups' acceptance: :math:`r_g` is the rejected share of a
group of weight :math:`m_g`, and :math:`r_g^0` what it was. Without it, the distributions of those who are rejected can
also be made equal by rejecting more people of one group and fewer of another.

D is zero where the distributions are equal. Nothing is gained by making all scores, or all costs, smaller: every cost
is divided by s. And nobody counts for more than their own step in a distribution function, however far away
they are: a few outliers cannot carry the equality, as they carry that of two means. The unit s of cost is the median
if costs are exponential. The median itself is a way out: trees can bring half of the rejected next to a boundary, and
in units of a median near zero all of the others would be beyond the last t, and alike.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from equirecourse._numba import njit
from equirecourse._validation import Groups

__all__ = ["CostObjective", "Prices", "Term", "soft_missing", "softened"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]

STAGES = (0.25, 0.05)  # τ, relative to the median size of a score: soft, to find the way, then nearly as people see it
# Weight of the drift, relative to that of the distance. Held for everybody together, by 1, the acceptance of groups
# moved by up to seven points on Adult and credit; so it moves by one there, at the same distance or a smaller one.
HOLD = 10.0
BANDWIDTH = 0.15  # h: costs that differ by less than this share of a unit are hardly told apart
GRID = np.arange(1, 25) / 6.0  # t, up to four units of cost
_WIDTH = BANDWIDTH / 40.0  # between the nodes at which people are counted
_N_NODES = int(np.ceil((GRID[-1] + 20.0 * BANDWIDTH) / _WIDTH)) + 3  # up to where the last of the grid sees nobody
UPPER = 0.75  # of the rejected have costs below the quantile that is
_UNITS = 2.0  # units of cost: of an exponential distribution, one is the median
_ROUNDED = 2.0 * BANDWIDTH  # of the step K by which quantiles are counted
_NEWTON_STEPS = 60  # for a quantile, of which some three are taken
_SETTLED = 1e-8  # relative length of the last of them, whose error is the square of that
_TINY = 1e-9  # of the mean size of a score: a median below it is none


class Term(NamedTuple):
    """A value, and its derivative by each score."""

    value: float
    gradient: Array


class Prices(NamedTuple):
    """What a unit of missing score costs each person, and who is looked at (0 or 1) when costs are compared."""

    values: Array
    counted: Array

    def mixed(self, newer: Prices, share: float) -> Prices:
        """Newer prices, or for those who are asked about in both cases the geometric mean with a share of the newer.

        With renewed prices as they come, a fit goes back and forth between two models, each of which looks cheap from
        the other.
        """
        both = (self.counted > 0) & (newer.counted > 0)
        mean = self.values ** (1.0 - share) * newer.values**share
        return Prices(np.where(both, mean, newer.values), newer.counted)


def soft_missing(scores: Array, weights: Array, softness: float) -> Array:
    """The score that people lack, smoothly, as the costs of the objective know it."""
    tau = softness * _typical_size(scores, weights / weights.sum())[0]
    return np.asarray(tau * np.logaddexp(0.0, -scores / tau)) if tau > 0.0 else np.zeros(len(scores))


@dataclass(frozen=True)
class CostObjective:
    """D, and the drift of the groups' acceptance, as functions of the scores of some people.

    Parameters
    ----------
    partitions : tuple of Groups
        One per sensitive feature whose groups are to have equal costs; their distances are added up.
    weights : ndarray of shape (n_people,)
        Of people; they need not add up to one.
    min_rejected : float
        A group with less (soft) rejected people than this is left out.
    softness : float
        τ, relative to the median size of a score. A mean would follow one far score, and make everybody else alike.
    compared : tuple of ndarray of bool, optional
        By partition, the groups that are compared, whatever becomes of their rejected people; see ``comparing``. By
        default those with enough of them at the scores in question.

    Examples
    --------
    >>> import numpy as np
    >>> from equirecourse._validation import check_groups
    >>> from equirecourse.equalizers._objective import CostObjective
    >>> scores, groups = np.array([-1.0, -2.0, -3.0, -1.0, -2.0, -3.0]), check_groups(list("aaabbb"), 6)
    >>> objective = CostObjective((groups,), np.ones(6), min_rejected=1)
    >>> objective.distance(scores).value < 1e-12
    True
    >>> objective.distance(scores * [1, 1, 1, 2, 2, 2]).value > 0.1
    True
    """

    partitions: tuple[Groups, ...]
    weights: Array
    min_rejected: float = 5.0
    softness: float = STAGES[-1]
    compared: tuple[Mask, ...] | None = None
    _known: dict[str, float] = field(default_factory=dict, repr=False, compare=False)  # where quantiles were last

    def comparing(self, scores: Array) -> CostObjective:
        """The same for the groups that have enough rejected people at these scores, for good.

        A group that could drop out while a model is fitted would be a way to equality: reject fewer of them.
        """
        rejected = self._softened(scores).rejected
        compared = tuple(self._large(groups, rejected) for groups in self.partitions)
        return replace(self, compared=compared, _known={})  # what others left behind would show in the last digits

    def _large(self, groups: Groups, rejected: Array) -> Mask:
        return np.bincount(groups.codes, weights=rejected, minlength=len(groups)) >= self.min_rejected

    def distance(self, scores: Array, prices: Prices | None = None) -> Term:
        """D and its gradient; see ``terms``."""
        return self.terms(scores, prices)[0]

    def unit(self, scores: Array) -> float:
        """τ at these scores."""
        return self._softened(scores).tau

    def of_costs(self, costs: Array, rejected: Array, counted: Array) -> tuple[float, Array, Array]:
        """D of given costs and soft decisions, and its derivatives by them.

        Parameters
        ----------
        costs, rejected : ndarray of shape (n_people,)
            Cost of each person, and how far they are rejected, from 0 to 1.
        counted : ndarray of shape (n_people,)
            Who is looked at (0 or 1).

        Returns
        -------
        value : float
            D.
        by_cost, by_rejected : ndarray of shape (n_people,)
            Its derivatives.
        """
        by_q, by_u = np.zeros(len(costs)), np.zeros(len(costs))
        mass = self.weights / self.weights.sum() * counted
        q = mass * rejected
        s = unit_of(costs, q)
        if not s > 0.0:
            return 0.0, by_u, by_q
        u, value = costs / s, 0.0
        for k, groups in enumerate(self.partitions):
            used = self._large(groups, rejected * (mass > 0.0)) if self.compared is None else self.compared[k]
            if used.sum() >= 2:
                value += _distance(u, q, groups.codes, used, by_q, by_u)
        # The unit moves along: d(c/s) = dc/s − u ds/s.
        x = (1.0 - u / _UNITS) / _ROUNDED
        root = 1.0 / np.sqrt(1.0 + x * x)
        slopes = q * root**3
        moved = float(by_u @ u) / float(slopes @ u)
        by_mass = by_q + _UNITS * _ROUNDED * moved * (x * root + 1.0 - 2.0 * UPPER)
        return value, (by_u - moved * slopes) / s, mass * by_mass

    def rejection(self, scores: Array) -> Array:
        """The soft share of rejected people of each group, one partition after the other; what ``drift`` can hold."""
        return self._rejection(self._softened(scores))

    def drift(self, scores: Array, held: Array) -> Term:
        """The squared change of the groups' shares of rejected people, and its gradient.

        Parameters
        ----------
        scores : ndarray of shape (n_people,)
            Above zero is a yes.
        held : ndarray of shape (n_groups,)
            The shares that they had, as ``rejection`` gives them.

        Returns
        -------
        Term
            The mean over people of the squared change of their group's share, and over partitions.
        """
        return self._drift(self._softened(scores), held)

    def terms(self, scores: Array, prices: Prices | None = None, held: Array | None = None) -> tuple[Term, Term]:
        """D, and the drift of the groups' shares of rejected people, with their gradients.

        Parameters
        ----------
        scores : ndarray of shape (n_people,)
            Above zero is a yes.
        prices : Prices, optional
            Cost per unit of missing score; one for everybody if left out.
        held : ndarray of shape (n_groups,), optional
            Shares of rejected people that are to be held; without them there is no drift.

        Returns
        -------
        distance, drift : Term
            The distance is zero, with a gradient of zero, where less than two groups have enough rejected people.
        """
        soft = self._softened(scores)
        nothing = Term(0.0, np.zeros(len(soft.scores)))
        drift = nothing if held is None else self._drift(soft, held)
        if not soft.tau > 0.0:
            return nothing, drift
        known = Prices(np.ones(len(scores)), np.ones(len(scores))) if prices is None else prices
        return self._distance(soft, known) or nothing, drift

    def _softened(self, scores: Array) -> _Soft:
        f, m = np.asarray(scores, dtype=np.float64), self.weights / self.weights.sum()
        typical, by_score = _typical_size(f, m, self._known.get("size"))
        self._known["size"] = typical
        tau = self.softness * typical
        p, missing = softened(f, tau) if tau > 0.0 else (np.full(len(f), 0.5), np.zeros(len(f)))
        return _Soft(f, m, tau, self.softness * by_score, p, missing)

    def _distance(self, soft: _Soft, prices: Prices) -> Term | None:
        f, m, tau, tau_by_score, p, missing = soft
        rho, mass = prices.values, m * prices.counted
        q, c = mass * p, rho * tau * missing
        s = unit_of(c, q, self._known.get("cost"))
        if not s > 0.0:
            return None
        self._known["cost"] = s
        u = c / s
        value, by_q, by_u = 0.0, np.zeros(len(f)), np.zeros(len(f))
        for k, groups in enumerate(self.partitions):
            used = self._large(groups, p * (mass > 0.0)) if self.compared is None else self.compared[k]
            if used.sum() >= 2:
                value += _distance(u, q, groups.codes, used, by_q, by_u)
        gradient = np.empty(len(f))
        by_tau = _by_score(f, tau, p, missing, rho, mass, u, s, by_q, by_u, gradient)
        gradient += by_tau * tau_by_score
        return Term(value, gradient)

    @cached_property
    def _masses(self) -> Array:
        """Shares of everybody that the groups are."""
        return self._by_group(self.weights / self.weights.sum())

    def _rejection(self, soft: _Soft) -> Array:
        return self._by_group(soft.weights * soft.rejected) / np.where(self._masses > 0.0, self._masses, 1.0)

    def _by_group(self, values: Array) -> Array:
        """Sums over the groups of each partition, one partition after the other."""
        sums = [np.bincount(groups.codes, values, len(groups)) for groups in self.partitions]
        return np.concatenate(sums).astype(np.float64)

    def _drift(self, soft: _Soft, held: Array) -> Term:
        n_partitions = len(self.partitions)
        changes = self._rejection(soft) - held
        value = float(self._masses @ changes**2) / n_partitions
        if not soft.tau > 0.0:
            return Term(value, np.zeros(len(soft.scores)))
        ends = np.cumsum([len(groups) for groups in self.partitions])[:-1]
        by_p = np.zeros(len(soft.scores))
        for groups, own in zip(self.partitions, np.split(changes, ends), strict=True):
            by_p += 2.0 / n_partitions * own[groups.codes]
        slopes = by_p * soft.weights * soft.rejected * (1.0 - soft.rejected)
        by_tau = float(slopes @ soft.scores) / soft.tau**2
        return Term(value, -slopes / soft.tau + by_tau * soft.tau_by_score)


class _Soft(NamedTuple):
    """Scores, weights, τ and its derivative by each score, and for each person how far they are rejected and lack."""

    scores: Array
    weights: Array
    tau: float
    tau_by_score: Array
    rejected: Array
    missing: Array  # in units of τ


def unit_of(costs: Array, weights: Array, near: float | None = None) -> float:
    """The unit of cost: half of the (smoothed) upper quartile."""
    return smoothed_quantile(costs, weights, UPPER, None if near is None else _UNITS * near) / _UNITS


def smoothed_quantile(costs: Array, weights: Array, level: float, near: float | None = None) -> float:
    """The cost with so much of the weight below it, counted with the bandwidth of the distributions.

    Parameters
    ----------
    costs, weights : ndarray of shape (n_people,)
        Costs that are not negative, and weights.
    level : float
        Share of the weight.
    near : float, optional
        Where to begin to look for it; by default at the mean.

    Returns
    -------
    float
        Zero if there is no such cost above zero.
    """
    mass = float(weights.sum())
    if not mass > 0.0 or not costs.max(initial=0.0) > 0.0:
        return 0.0
    return float(_quantile(costs, weights, near or float(weights @ costs) / mass, level, _ROUNDED))


def _typical_size(scores: Array, shares: Array, near: float | None = None) -> tuple[float, Array]:
    """The smoothed median of the sizes of scores, and its derivative by each score."""
    sizes = np.abs(scores)
    mean, median = float(shares @ sizes), smoothed_quantile(sizes, shares, 0.5, near)
    if not median > _TINY * mean:  # most scores are zero
        return mean, shares * np.sign(scores)
    return median, _median_by_score(scores, shares, median, _ROUNDED)


def softened(f: Array, tau: float) -> tuple[Array, Array]:
    """How far each person is rejected, and the score they lack in units of τ: σ(−f/τ) and softplus(−f/τ)."""
    z = f / tau
    small = np.exp(-np.abs(z))
    return np.where(z > 0.0, small, 1.0) / (1.0 + small), np.log1p(small) + np.maximum(-z, 0.0)


@njit(cache=True)
def _quantile(c, q, s, level, width):  # type: ignore[no-untyped-def]
    """Newton's method from s on, kept within what is known to be too small and too large."""
    low, high = 0.0, np.inf
    for _ in range(_NEWTON_STEPS):
        excess, slope = 0.0, 0.0
        near, scale = 1.0 / width, 1.0 / (width * s)
        for i in range(len(c)):
            x = near - scale * c[i]
            root = 1.0 / np.sqrt(1.0 + x * x)
            excess += q[i] * (x * root + 1.0 - 2.0 * level)
            slope += q[i] * root * root * root * c[i]
        slope *= scale / s
        if excess > 0.0:
            high = s
        else:
            low = s
        ahead = s - excess / slope
        if abs(ahead - s) <= _SETTLED * s:
            return ahead
        ahead = min(max(ahead, 0.25 * s), 4.0 * s)  # far away the slope is next to nothing
        if not low < ahead < high:  # an end of the bracket is no progress: the steps could go back and forth for ever
            ahead = 0.5 * (low + high)
        s = ahead
    return s


@njit(cache=True)
def _median_by_score(scores, shares, median, width):  # type: ignore[no-untyped-def]
    """Derivative of the smoothed median of the sizes of scores by each score."""
    gradient, total = np.empty(len(scores)), 0.0
    for i in range(len(scores)):
        u = abs(scores[i]) / median
        x = (1.0 - u) / width
        root = 1.0 / np.sqrt(1.0 + x * x)
        pull = shares[i] * root * root * root
        total += pull * u
        gradient[i] = pull * np.sign(scores[i])
    return gradient / total


@njit(cache=True)
def _by_score(f, tau, p, missing, rho, mass, u, s, by_q, by_u, gradient):  # type: ignore[no-untyped-def]
    """Fill in the derivative by each score from those by q and u, and return that by τ.

    The unit moves along: d(c/s) = dc/s − u ds/s.
    """
    near, per_tau, per_s = 1.0 / _ROUNDED, 1.0 / tau, 1.0 / s
    moving, pulling = 0.0, 0.0
    for i in range(len(f)):
        x = near * (1.0 - u[i] / _UNITS)
        root = 1.0 / np.sqrt(1.0 + x * x)
        moving += by_u[i] * u[i]
        pulling += mass[i] * p[i] * root * root * root * u[i]
    moved, by_tau = moving / pulling, 0.0
    for i in range(len(f)):
        x = near * (1.0 - u[i] / _UNITS)
        root = 1.0 / np.sqrt(1.0 + x * x)
        by_c = per_s * rho[i] * (by_u[i] - moved * mass[i] * p[i] * root * root * root)
        by_p = mass[i] * (by_q[i] + _UNITS * _ROUNDED * moved * (x * root + 1.0 - 2.0 * UPPER))
        z, slope = per_tau * f[i], per_tau * p[i] * (1.0 - p[i])
        by_tau += by_p * slope * z + by_c * (missing[i] + z * p[i])
        gradient[i] = -by_p * slope - by_c * p[i]
    return by_tau


def _table() -> Array:
    """σ((t − u)/h) for each node u and each t of the grid."""
    nodes = _WIDTH * (np.arange(_N_NODES) - 1)
    return np.asarray(expit((GRID[None, :] - nodes[:, None]) / BANDWIDTH))


@njit(cache=True)
def _histograms(u, q, codes, used, n_nodes, width):  # type: ignore[no-untyped-def]
    """Mass of each group at the nodes, and all of it by group.

    Each person is divided between the three nodes about them by a quadratic B-spline: unlike with the two next to them,
    the derivatives have no jumps, and a minimum can be found to the last digits.
    """
    histograms, masses = np.zeros((len(used), n_nodes)), np.zeros(len(used))
    for i in range(len(u)):
        g = codes[i]
        if used[g]:
            masses[g] += q[i]
            place = u[i] / width + 1.0
            if place < n_nodes - 2:
                node = int(place + 0.5)
                off = place - node
                histograms[g, node - 1] += q[i] * 0.5 * (0.5 - off) ** 2
                histograms[g, node] += q[i] * (0.75 - off**2)
                histograms[g, node + 1] += q[i] * 0.5 * (0.5 + off) ** 2
    return histograms, masses


@njit(cache=True)
def _spread(u, q, codes, used, curves, offsets, width, by_q, by_u):  # type: ignore[no-untyped-def]
    """Add to the derivatives by q and u, from curves over the nodes, one per group."""
    last = curves.shape[1] - 2
    for i in range(len(u)):
        g = codes[i]
        if used[g]:
            by_q[i] += offsets[g]
            place = u[i] / width + 1.0
            if place < last:
                node = int(place + 0.5)
                off = place - node
                low, here, high = curves[g, node - 1], curves[g, node], curves[g, node + 1]
                by_q[i] += 0.5 * (0.5 - off) ** 2 * low + (0.75 - off**2) * here + 0.5 * (0.5 + off) ** 2 * high
                by_u[i] += q[i] * ((0.5 + off) * high - (0.5 - off) * low - 2.0 * off * here) / width


def _distance(u: Array, q: Array, codes: Ints, used: Mask, by_q: Array, by_u: Array) -> float:
    """The distance of one partition; adds its derivatives by q and u. Groups that are not used are not there.

    The distribution functions are smoothed between nodes, which is exact to some 1e-5.
    """
    histograms, masses = _histograms(u, q, codes, used, _N_NODES, _WIDTH)
    table, step = _TABLE, GRID[1] - GRID[0]
    used = used & (masses > 0.0)
    everybody = histograms.sum(axis=0) @ table / masses.sum()
    own = np.divide(histograms @ table, masses[:, None], where=used[:, None], out=np.tile(everybody, (len(used), 1)))
    differences = own - everybody
    pulls = 2.0 * step * differences / np.where(used, masses, 1.0)[:, None]
    total = 2.0 * step * differences.sum(axis=0) / masses.sum()
    offsets = -(pulls * own).sum(axis=1) + float(total @ everybody)
    _spread(u, q, codes, used, (pulls - total) @ table.T, offsets, _WIDTH, by_q, by_u)
    return float(step * np.square(differences).sum())


_TABLE = _table()
