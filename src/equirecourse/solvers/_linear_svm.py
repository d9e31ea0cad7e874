"""The exact linear SVM on any number of people: solved over those near the margin, verified on everybody.

    minimise ½‖w̃‖² − p·w̃ + Σ Cᵢ max(0, 1 − yᵢ f(xᵢ)),    f(x) = w·x + b,    w = A w̃

Benchmark rows: ``strong_ridge`` and ``weak_ridge`` of ``benchmarks/scale.py``. The interior point over everybody takes
eleven to twenty-eight times as long (200,000 people, 50 features).

Notation
--------
A        I − Q diag(1 − f) Qᵀ, the projection that takes the balance out of the features
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
from equirecourse.solvers._polish import intercept_from, polish
from equirecourse.solvers._projected_features import ProjectedFeatures
from equirecourse.solvers._solution import LinearSolution
from equirecourse.solvers._threads import one_blas_thread

__all__ = ["LinearSVM"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

# How the people near the margin are chosen decides how long a solve takes, never what it finds. The values are round
# numbers by hand.
_SMALL = 4000  # people whom the interior point takes all at once
_PART = 8  # a rough model is that of one person in so many
_BAND = 1.5  # the people near the margin are within so many standard errors of the rough model
_UNKNOWN_SHARE = 0.1  # of what another balance changes, after the guess from one in eight
_FEWEST = 0.01  # a working set of so small a share of the people costs no more than one more pass over everybody
_WIDER = 2.0  # the next band, when the last one was too narrow to help
_NARROWER = 4.0  # a turn leaves few people wrong, and the next needs but those and the nearest
_MOST_TURNS = 30  # past which everybody is solved for at once
_MOST_BLURRED = 3  # turns that may fail to be exact for the working set itself
_ROUGHLY = 0.2  # tolerance of a rough model, in units of the margin
_FINER = 1e-8  # of tol: so small a gap tells on whose margin, bound or side everybody is, to tol
_POLISH_ROUNDS = 50  # a few are needed; each is cheap, as few coefficients are free
_MOST_ITERATIONS = 100  # of the interior point, which takes some twenty
_SAMPLE = 20_000  # people who tell how wide a band holds how many


@dataclass(frozen=True)
class _Model:
    """A direction and an intercept, and what they say of everybody."""

    direction: Array
    intercept: float  # the one outside ‖w̃‖
    scores: Array
    margin: Array
    value: float  # of the primal objective


class LinearSVM:
    """One training set, solved for one balance or another.

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
        self.tol, self.max_iter = tol, min(max_iter, _MOST_ITERATIONS)
        self.fit_intercept = fit_intercept
        self.scaling = float(intercept_scaling) if fit_intercept else 0.0
        self.free_intercept = fit_intercept and intercept_scaling == 0
        self._part: LinearSVM | None = None
        self._last: LinearSolution | None = None
        self._projected = ProjectedFeatures(X, self.scaling, None, None)
        self._pull = np.empty(0)

    def solve(
        self,
        basis: Array | None = None,
        factors: Array | None = None,
        *,
        pull: Array | None = None,
        screen: bool = True,
    ) -> LinearSolution:
        """Solve for features of whose directions ``basis`` the ``factors`` are left.

        With ``pull`` instead, for that p; without ``screen`` for everybody at once.
        """
        self._projected = ProjectedFeatures(self.X, self.scaling, basis, factors)
        self._pull = np.zeros(self.X.shape[1] + (self.scaling > 0)) if pull is None else pull
        with one_blas_thread():
            if not screen or len(self.y) <= _SMALL:
                self._last = self._at_once(0)
            else:
                self._last = self._from_few(basis, factors, pull)
        return self._last

    def _from_few(self, basis: Array | None, factors: Array | None, pull: Array | None) -> LinearSolution:
        """Solve from what one in eight of the people say."""
        if self._part is None:
            self._part = self._one_in_eight()
        if (self._part.y == self._part.y[0]).all():  # too few of one label for a sample: nothing is known
            return self._at_once(0)
        before = self._part._last
        rough = self._part.solve(basis, factors, pull=pull)
        if self._last is None or before is None:
            model = self._look(rough.direction, rough.intercept)
            # Scores of n/8 people are known to about √(8 d / n).
            share = min(1.0, _BAND * np.sqrt(_PART * self.X.shape[1] / len(self.y)))
            return self._screened(model, self._width(model.margin, share), rough.n_iter)
        # What another balance changes in the model of everybody is much what it changes in a model of few.
        direction = self._last.direction + (rough.direction - before.direction)
        model = self._look(direction, self._last.intercept + (rough.intercept - before.intercept))
        moved = float(np.sqrt(np.mean((model.scores - self._last.scores) ** 2)))
        return self._screened(model, _BAND * _UNKNOWN_SHARE * moved, rough.n_iter)

    def _one_in_eight(self) -> LinearSVM:
        """The same problem for some of the people, who weigh as much as all of them."""
        n = len(self.y)
        rows = np.sort(np.random.default_rng(0).permutation(n)[: n // _PART])
        C = self.C[rows]
        return LinearSVM(
            self.X[rows],
            self.y[rows],
            C * (self.C.sum() / C.sum()),
            tol=max(_ROUGHLY, self.tol),
            max_iter=self.max_iter,
            intercept_scaling=self.scaling,
            fit_intercept=self.fit_intercept,
        )

    # --- the people near the margin ----------------------------------------------------------------------------------

    def _screened(self, model: _Model, width: float, n_iter: int) -> LinearSolution:
        """Solve from a rough model whose scores are known to about ``width``."""
        n, C = len(self.y), self.C
        blurred = 0
        beta = np.where(model.margin < 1.0, self.y * C, 0.0)
        direction, lowest, wrong = self._direction_of(beta) + self._pull, model.value, np.zeros(0, dtype=np.intp)
        fewest = min(1.0, max(_FEWEST, (500 + 10 * self.X.shape[1]) / n))
        for turn in range(1, _MOST_TURNS):
            width = max(width, self._width(model.margin, fewest))
            away = np.abs(model.margin - 1.0)
            working = np.union1d(np.flatnonzero(away <= width), wrong)
            while len(working) <= n // 2 and not self._balanced(beta, working):
                if not 0.0 < width < np.inf:  # everybody on the margin, or a rough model that is none
                    return self._at_once(n_iter)
                width *= 2
                working = np.flatnonzero(away <= width)
            if len(working) > n // 2:
                break
            features, start = self._features(working), beta[working]
            fixed = float(beta.sum() - start.sum())
            others = direction - start @ features
            found, b, steps = self._reduced(working, features, others, fixed, model.margin[working] - 1.0)
            n_iter += steps
            trial = self._look(found @ features + others, b)
            left = fixed + float(found.sum()) if self.free_intercept else 0.0
            if trial.value > lowest + 1e-9 * abs(lowest) or abs(left) > 1e-9 * float(C.sum()):
                # The people near the margin could not make up for what the fixed ones got wrong: let more of them try.
                width *= _WIDER
                continue
            model, lowest, direction = trial, trial.value, trial.direction
            beta[working] = found
            width /= _NARROWER
            violated = self._excess(beta, model.margin) > 0.1 * self.tol
            wrong = np.flatnonzero(violated)
            violated[working] = False
            alone = not violated.any()  # nobody outside the working set is wrong
            blurred += alone
            # Rounding errors may blur who is on the margin; the next, narrower, working set often clears that up.
            if alone and (len(wrong) == 0 or blurred >= _MOST_BLURRED):
                return self._solution(beta, model, n_iter, turn)
        return self._at_once(n_iter)

    def _at_once(self, n_iter: int) -> LinearSolution:
        """Everybody in one go."""
        features = self._features(slice(None))
        beta, b, steps = self._reduced(slice(None), features, self._pull, 0.0, None)
        return self._solution(beta, self._look(beta @ features + self._pull, b), n_iter + steps, 1)

    def _reduced(
        self, rows: Rows | slice, features: Array, others: Array, fixed: float, beyond: Array | None
    ) -> tuple[Array, float, int]:
        """Solve for some of the people; ``fixed`` is Σβ of the others. Their β, the intercept, and iterations."""
        y, C = self.y[rows], self.C[rows]
        beta, n_iter = minimise_linear(
            features,
            y,
            C,
            tol=min(_FINER * self.tol, 1e-7),
            max_iter=self.max_iter,
            offset=others,
            total=-fixed,
            intercept=self.free_intercept,
            beyond=beyond,
        )
        # Two people whose β is fixed stand for the others in the polish; without a free intercept a third one, at 0
        # and with no label, takes whatever Σβ is, which makes the intercept 0.
        slack = 0.0 if self.free_intercept else np.inf
        lower = np.concatenate([np.where(y > 0, 0.0, -C), [1.0, fixed - 1.0, -slack]])
        upper = np.concatenate([np.where(y > 0, C, 0.0), [1.0, fixed - 1.0, slack]])
        start = np.concatenate([np.clip(beta, lower[:-3], upper[:-3]), [1.0, fixed - 1.0, 0.0]])
        if not self.free_intercept:
            start[-1] = -start[:-1].sum()

        def block(chosen: Rows) -> Array:
            inside = np.zeros((len(chosen), features.shape[1]))
            real = chosen < len(y)
            inside[real] = features[chosen[real]]
            return np.asarray(inside @ inside.T)

        def gradient(beta: Array) -> Array:
            return np.append(features @ (beta[:-3] @ features + others) - y, np.zeros(3))

        beta, g, _ = polish(block, gradient, lower, upper, start, rounds=_POLISH_ROUNDS)
        b = intercept_from(g[:-3], beta[:-3], lower[:-3], upper[:-3]) if self.free_intercept else 0.0
        return beta[:-3], b, n_iter

    def _look(self, direction: Array, intercept: float) -> _Model:
        coef, b = self._model(direction, intercept)
        scores = self.X @ coef + b
        margin = self.y * scores
        hinge = float(self.C @ np.maximum(0.0, 1.0 - margin))
        value = 0.5 * float(direction @ direction) - float(self._pull @ direction) + hinge
        return _Model(direction, intercept, scores, margin, value)

    def _width(self, margin: Array, share: float) -> float:
        """Of a band around the margin that holds about this share of the people."""
        sample = margin[:: max(1, len(margin) // _SAMPLE)]
        return float(np.quantile(np.abs(sample - 1.0), share))

    def _excess(self, beta: Array, margin: Array) -> Array:
        """How far each person is from where their β says: beyond the margin, inside it, or on it."""
        away, size = margin - 1.0, np.abs(beta)
        return np.where(size == 0.0, -away, np.where(size >= self.C, away, np.abs(away)))

    def _balanced(self, beta: Array, working: Rows) -> bool:
        """Whether the people of the working set can make Σβ zero."""
        if not self.free_intercept:
            return len(working) > 0
        y, C = self.y[working], self.C[working]
        needed = float(beta[working].sum() - beta.sum())
        return -0.99 * float(C[y < 0].sum()) < needed < 0.99 * float(C[y > 0].sum())

    # --- between the features and the projected ones -----------------------------------------------------------------

    def _features(self, rows: Rows | slice) -> Array:
        """Projected features of some people, with the constant one where the intercept is penalised."""
        X = self._projected.through(self.X[rows].T).T
        return np.column_stack([X, np.full(len(X), self.scaling)]) if self.scaling else X

    def _direction_of(self, beta: Array) -> Array:
        direction = self._projected.transposed(beta)
        return direction if self.scaling else direction[:-1]

    def _model(self, direction: Array, b: float) -> tuple[Array, float]:
        """Coefficients and intercept for the original features."""
        if self.scaling:
            direction, b = direction[:-1], self.scaling * float(direction[-1])
        return self._projected.through(direction), b

    def _solution(self, beta: Array, model: _Model, n_iter: int, turns: int) -> LinearSolution:
        direction = model.direction
        coef, constant = self._model(direction, model.intercept)
        gap = model.value - (float(np.abs(beta).sum()) - 0.5 * float(direction @ direction))
        violation = max(float(self._excess(beta, model.margin).max()), 0.0)
        return LinearSolution(
            beta, coef, constant, model.scores, direction, model.intercept, model.value, gap, violation, n_iter, turns
        )
