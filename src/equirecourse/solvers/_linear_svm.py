"""The exact linear SVM on any number of people: solved over those near the margin, verified on everybody.

    minimise ½‖w̃‖² − p·w̃ + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ)),    f(x) = w·x + b,    w = A w̃

Notation
--------
A        symmetric d × d: the identity, or the projection that takes the balance out of the features
p        a constant pull on the direction: that of a multiplier which is held, zero for an ordinary SVM
β        label × γ, the dual coefficients: 0 beyond the margin, ±C inside it, in between on it
working  the people near the margin, over whom the dual is solved while the others' β stay as they are
q        A Xᵀβ of those others, and p

Most people's β can be told from a rough model. The dual over the people near the margin, with the others fixed, is a
small problem for the interior point; one pass over everybody then tells whether anybody was fixed wrongly. Those join
the people near the margin, and it is solved again: each turn can only improve the dual, and it ends when the optimality
conditions hold for everybody. The rough model is the same thing on an eighth of the people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equirecourse.solvers._interior_point import minimise_linear
from equirecourse.solvers._margins import excess_of, hinge_of
from equirecourse.solvers._polish import intercept_from, polish
from equirecourse.solvers._threads import in_parts, one_blas_thread, side_by_side

__all__ = ["LinearSVM", "LinearSolution", "one_in_eight"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_SMALL = 4000  # people whom the interior point takes all at once
_PART = 8  # a rough model is that of one person in so many
_FEWEST = 0.01  # a working set of so small a share of the people costs no more than one more pass over everybody
_BAND = 1.5  # the people near the margin are within so many standard errors of the rough model
_MOST_TURNS = 30  # past which everybody is solved for at once
_UNKNOWN_SHARE = 0.15  # of what another balance changes, after the guess from few people
_UNKNOWN_SHARE_EXPECTED = 0.08  # the same after the model of one in eight: more people, less noise
_WIDER = 2.0  # the next band, when the last one was too narrow to help
_NARROWER = 4.0  # a turn leaves few people wrong, and the next needs but those and the nearest
_ROUGHLY = 0.2  # tolerance of a rough model
_FINER = 1e-8  # of tol: so small a gap tells on whose margin, bound or side everybody is, to tol
_POLISH_ROUNDS = 50  # a few are needed; each is cheap, as few coefficients are free
_MOST_BLURRED = 3  # turns that may fail to be exact for the working set itself
_SAMPLE = 20_000  # people who tell how wide a band holds how many


@dataclass(frozen=True)
class LinearSolution:
    """A solution: coefficients of both forms, scores of everybody, and how exact they are."""

    beta: Array
    coef: Array
    constant: float  # f(x) = coef·x + constant
    scores: Array
    direction: Array  # w̃, with the coefficient of the constant feature where the intercept is penalised
    intercept: float  # the one outside ‖w̃‖
    objective: float
    gap: float  # primal minus dual objective, an upper bound on what the objective could still lose
    violation: float  # of the optimality conditions, in units of the margin
    n_iter: int  # iterations of the interior point over everybody or the people near the margin
    turns: int  # passes over everybody


@dataclass(frozen=True)
class _Rough:
    """The model of a part of the people, and how far off its scores may be (NaN: nobody knows)."""

    direction: Array
    intercept: float  # the one outside ‖w‖
    error: float
    n_iter: int


@dataclass(frozen=True)
class _Reduced:
    """What the interior point and its polish found for the people near the margin."""

    beta: Array
    direction: Array  # A Xᵀβ over everybody
    intercept: float
    n_iter: int


def one_in_eight(n: int) -> Rows:
    """The people whose model is the first, rough, one of everybody; the same for everyone who asks."""
    return np.sort(_order_of(n)[: n // _PART])


def _order_of(n: int) -> Rows:
    return np.random.default_rng(0).permutation(n)


class LinearSVM:
    """One training set, solved again and again for other balances.

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Features, d ≪ n.
    y : ndarray, shape (n,)
        Labels ±1.
    C : ndarray, shape (n,)
        Positive weights of the losses.
    tol : float
        Largest violation of the optimality conditions, in units of the margin.
    max_iter : int
        Most iterations of one run of the interior point.
    intercept_scaling : float
        0 leaves the intercept out of ‖w‖, as an SVM does; a positive number makes it the coefficient of a constant
        feature of that value, as LIBLINEAR does.
    fit_intercept : bool
        Whether there is an intercept at all.
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        C: Array,
        *,
        tol: float = 1e-4,
        max_iter: int = 100,
        intercept_scaling: float = 0.0,
        fit_intercept: bool = True,
    ) -> None:
        self.X, self.y, self.C = X, y, C
        self.tol, self.max_iter = tol, max_iter
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        self.free_intercept = fit_intercept and intercept_scaling == 0
        self._order: Rows | None = None
        self._levels: dict[int, _Rough] = {}
        self._last: LinearSolution | None = None
        self._expected: LinearSolution | None = None
        self._pull = np.zeros(X.shape[1] + (self.scaling > 0))
        self._threads = 1

    def solve(self, shrink: Array | None = None, *, pull: Array | None = None, screen: bool = True) -> LinearSolution:
        """Solve for the projection A = ``shrink`` (None: the identity); without ``screen`` for everybody at once."""
        with one_blas_thread() as self._threads:
            return self._solve(shrink, pull, screen)

    def _solve(self, shrink: Array | None, pull: Array | None, screen: bool) -> LinearSolution:
        n = len(self.y)
        self._pull = np.zeros(self.X.shape[1] + (self.scaling > 0)) if pull is None else pull
        if not screen or n <= _SMALL:
            return self._at_once(shrink, 0)
        few = n // _PART**2 if n // _PART**2 > _SMALL else n // _PART
        before, share = self._levels.get(few), _UNKNOWN_SHARE
        known = before is not None and self._last is not None
        rough: _Rough | None
        if self._expected is not None and known and n // _PART in self._levels:
            before, share = self._levels[n // _PART], _UNKNOWN_SHARE_EXPECTED
            rough = _Rough(self._expected.direction, self._expected.intercept, before.error, 0)
            if few < n // _PART:  # for the next balance
                self._rough(shrink, few)
            self._levels[n // _PART] = rough
        else:
            rough = self._rough(shrink, few if known else n // _PART)
        self._expected = None
        if rough is None:
            return self._at_once(shrink, 0)
        if before is not None and self._last is not None:
            # What another balance changes in the model of everybody is much what it changes in a model of few.
            direction = self._last.direction + (rough.direction - before.direction)
            b = self._last.intercept + (rough.intercept - before.intercept)
            coef, constant = self._model(direction, b, shrink)
            sample = self._sample()
            moved = self.X[sample] @ coef + constant - self._last.scores[sample]
            rough = _Rough(direction, b, share * float(np.sqrt(np.mean(moved**2))), rough.n_iter)
        found = self._screened(rough, shrink)
        self._last = found
        return found

    def expect(self, part: LinearSVM) -> None:
        """Begin the next solve where ``part``, the same problem for ``one_in_eight``, has ended."""
        self._expected = part._last

    # --- the people near the margin ----------------------------------------------------------------------------------

    def _rough(self, shrink: Array | None, most: int) -> _Rough | None:
        """The model of ``most`` of the people, from that of an eighth of those, and so on."""
        if self._order is None:
            self._order = _order_of(len(self.y))
        sizes = [most]
        while sizes[-1] > _SMALL:
            sizes.append(sizes[-1] // _PART)
        rough: _Rough | None = None
        for size in reversed(sizes):
            rows = np.sort(self._order[:size])
            y, C = self.y[rows], self.C[rows]
            if (y == y[0]).all():  # too few of one label for a sample: nothing is known
                continue
            part = LinearSVM(
                self.X[rows],
                y,
                C * (self.C.sum() / C.sum()),
                tol=_ROUGHLY,
                max_iter=self.max_iter,
                intercept_scaling=self.scaling,
                fit_intercept=self.free_intercept or self.scaling > 0,
            )
            part._pull, part._threads = self._pull, self._threads
            found = part._at_once(shrink, 0) if rough is None else part._screened(rough, shrink)
            error = np.nan
            if rough is not None:  # how far this step moved the scores tells how far the next one will
                coef, b = self._model(rough.direction, rough.intercept, shrink)
                error = float(np.sqrt(np.mean((part.X @ coef + b - found.scores) ** 2) / _PART))
            rough = self._levels[size] = _Rough(found.direction, found.intercept, error, found.n_iter)
        return rough

    def _screened(self, rough: _Rough, shrink: Array | None) -> LinearSolution:
        X, y, C, n = self.X, self.y, self.C, len(self.y)
        n_iter, whole = rough.n_iter, float(C.sum())
        coef, b = self._model(rough.direction, rough.intercept, shrink)
        _, margin, hinge = self._margins(coef, b)
        lowest = self._half_square(rough.direction) + hinge
        if np.isnan(rough.error):  # scores of n/8 people are known to about √(8 d / n)
            width = self._width(margin, min(1.0, _BAND * np.sqrt(_PART * X.shape[1] / n)))
        else:
            width = _BAND * rough.error
        beta = np.where(margin < 1.0, y * C, 0.0)
        direction = self._through(shrink, beta @ X, beta.sum()) + self._pull
        wrong, blurred = np.zeros(0, dtype=np.intp), 0
        fewest = min(1.0, max(_FEWEST, (500 + 10 * X.shape[1]) / n))
        for turn in range(1, _MOST_TURNS):
            width = max(width, self._width(margin, fewest))
            working = _merged(np.flatnonzero(np.abs(margin - 1.0) <= width), wrong)
            while len(working) <= n // 2 and not self._balanced(beta, working):
                if not 0.0 < width < np.inf:  # everybody on the margin, or a rough model that is none
                    return self._at_once(shrink, n_iter)
                width *= 2
                working = np.flatnonzero(np.abs(margin - 1.0) <= width)
            if len(working) > n // 2:
                break
            Xw, start = self._features(working, shrink), beta[working]
            others = direction - start @ Xw, float(beta.sum() - start.sum())
            found = self._reduced(working, Xw, *others, margin[working] - 1.0)
            n_iter += found.n_iter
            coef, b = self._model(found.direction, found.intercept, shrink)
            scores, moved, hinge = self._margins(coef, b)
            value = self._half_square(found.direction) + hinge
            left = float(beta.sum() - start.sum() + found.beta.sum()) if self.free_intercept else 0.0
            if value > lowest + 1e-9 * abs(lowest) or abs(left) > 1e-9 * whole:
                # The people near the margin could not make up for what the fixed ones got wrong: let more of them try.
                width *= _WIDER
                continue
            margin, lowest, direction = moved, value, found.direction
            beta[working] = found.beta
            width /= _NARROWER
            excess = excess_of(beta, C, margin)
            violated = excess > 0.1 * self.tol
            wrong = np.flatnonzero(violated)
            violated[working] = False
            alone = not violated.any()  # nobody outside the working set is wrong
            blurred += alone
            # Rounding errors may blur who is on the margin; the next, narrower, working set often clears that up.
            if alone and (len(wrong) == 0 or blurred >= _MOST_BLURRED):
                return self._solution(beta, direction, found.intercept, shrink, scores, value, excess, n_iter, turn)
        return self._at_once(shrink, n_iter)

    def _margins(self, coef: Array, b: float) -> tuple[Array, Array, float]:
        """Score and margin of everybody, and the sum of the losses."""
        scores, margin = np.empty((2, len(self.y)))

        def one(at: slice) -> float:
            return float(hinge_of(self.X[at] @ coef, b, self.y[at], self.C[at], scores[at], margin[at]))

        return scores, margin, sum(side_by_side(one, in_parts(*self.X.shape), self._threads))

    def _sample(self) -> Rows:
        return np.arange(0, len(self.y), max(1, len(self.y) // _SAMPLE))

    def _width(self, margin: Array, share: float) -> float:
        """Of a band around the margin that holds about this share of the people."""
        return float(np.quantile(np.abs(margin[self._sample()] - 1.0), share))

    def _balanced(self, beta: Array, working: Rows) -> bool:
        """Whether the people of the working set can make Σβ zero."""
        if not self.free_intercept:
            return len(working) > 0
        y, C = self.y[working], self.C[working]
        needed = float(beta[working].sum() - beta.sum())
        return -0.99 * float(C[y < 0].sum()) < needed < 0.99 * float(C[y > 0].sum())

    def _reduced(self, working: Rows, Xw: Array, q: Array, fixed: float, beyond: Array | None = None) -> _Reduced:
        """Solve for the working set, exactly; ``fixed`` is Σβ of the others, ``beyond`` where margins are so far."""
        y, C = self.y[working], self.C[working]
        beta, n_iter = minimise_linear(
            Xw,
            y,
            C,
            tol=min(_FINER * self.tol, 1e-7),
            max_iter=self.max_iter,
            offset=q,
            total=-fixed,
            intercept=self.free_intercept,
            threads=self._threads,
            beyond=beyond,
        )
        # Two people whose β is fixed stand for the others in the polish; without a free intercept a third one, at 0
        # and with no label, takes whatever Σβ is, which makes the intercept 0.
        slack = 0.0 if self.free_intercept else np.inf
        d = Xw.shape[1]
        lower = np.concatenate([np.where(y > 0, 0.0, -C), [1.0, fixed - 1.0, -slack]])
        upper = np.concatenate([np.where(y > 0, C, 0.0), [1.0, fixed - 1.0, slack]])
        start = np.concatenate([np.clip(beta, lower[:-3], upper[:-3]), [1.0, fixed - 1.0, 0.0]])
        if not self.free_intercept:
            start[-1] = -start[:-1].sum()
        target = np.concatenate([y, np.zeros(3)])

        def rows_of(rows: Rows) -> Array:
            inside = np.zeros((len(rows), d))
            real = rows < len(y)
            inside[real] = Xw[rows[real]]
            return inside

        def gradient(coefficients: Array) -> Array:
            direction = coefficients[:-3] @ Xw + q
            return np.asarray(np.concatenate([Xw @ direction, [0.0, 0.0, 0.0]]) - target)

        beta, g, _ = polish(
            lambda rows: rows_of(rows) @ rows_of(rows).T, gradient, lower, upper, start, rounds=_POLISH_ROUNDS
        )
        b = intercept_from(g[:-3], beta[:-3], lower[:-3], upper[:-3]) if self.free_intercept else 0.0
        return _Reduced(beta[:-3], beta[:-3] @ Xw + q, b, n_iter)

    def _at_once(self, shrink: Array | None, n_iter: int) -> LinearSolution:
        """Everybody in one go."""
        everybody = np.arange(len(self.y))
        Xw = self._features(everybody, shrink)
        found = self._reduced(everybody, Xw, self._pull, 0.0)
        coef, b = self._model(found.direction, found.intercept, shrink)
        scores, margin, hinge = self._margins(coef, b)
        value, excess = self._half_square(found.direction) + hinge, excess_of(found.beta, self.C, margin)
        return self._solution(
            found.beta, found.direction, found.intercept, shrink, scores, value, excess, n_iter + found.n_iter, 1
        )

    def _half_square(self, direction: Array) -> float:
        """What a direction costs: ½‖w̃‖² − p·w̃."""
        return 0.5 * float(direction @ direction) - float(self._pull @ direction)

    # --- between the features and the projected ones -----------------------------------------------------------------

    def _features(self, rows: Rows, shrink: Array | None) -> Array:
        """Projected features of some people, with the constant one where the intercept is penalised."""
        X = self.X if len(rows) == len(self.y) else self.X[rows]
        X = X if shrink is None else X @ shrink
        return np.column_stack([X, np.full(len(rows), self.scaling)]) if self.scaling else X

    def _through(self, shrink: Array | None, direction: Array, total: float) -> Array:
        direction = direction if shrink is None else shrink @ direction
        return np.append(direction, self.scaling * total) if self.scaling else direction

    def _model(self, direction: Array, b: float, shrink: Array | None) -> tuple[Array, float]:
        """Coefficients and intercept for the original features."""
        if self.scaling:
            direction, b = direction[:-1], self.scaling * float(direction[-1])
        return (direction if shrink is None else shrink @ direction), b

    def _solution(
        self,
        beta: Array,
        direction: Array,
        b: float,
        shrink: Array | None,
        scores: Array,
        primal: float,
        excess: Array,
        n_iter: int,
        turns: int,
    ) -> LinearSolution:
        coef, constant = self._model(direction, b, shrink)
        gap = primal - (float(np.abs(beta).sum()) - 0.5 * float(direction @ direction))
        violation = max(float(excess.max()), 0.0)
        return LinearSolution(beta, coef, constant, scores, direction, b, primal, gap, violation, n_iter, turns)


def _merged(near: Rows, wrong: Rows) -> Rows:
    return near if len(wrong) == 0 else np.union1d(near, wrong)
