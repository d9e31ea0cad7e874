r"""Equal recourse as a term of a loss in PyTorch, for any model that ends in a score.

The term is the distance between the groups' distributions of cost that the equalizers of this package minimise, with
its gradient by each score; PyTorch carries the gradient on into the model. It needs the extra ``torch``. Without
PyTorch, the first look at :class:`RecourseLoss` raises an ``ImportError`` that says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equirecourse._validation import Groups, as_frame, check_groups, check_number, refuse_masked, shown
from equirecourse.equalizers._objective import HOLD, CostObjective, Prices, Term

__all__ = ["RecourseLoss"]

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":  # it is there, and something that it needs is not
        raise

    def __getattr__(name: str) -> Any:
        if name in __all__:
            raise ImportError('equirecourse.torch needs PyTorch; run pip install "equirecourse[torch]".')
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

else:

    class _FromNumpy(torch.autograd.Function):
        """A value that was computed outside of PyTorch, with its derivative by the scores."""

        @staticmethod
        def forward(ctx: Any, scores: Any, value: float, gradient: Array) -> Any:
            """Pass the value on, in the kind of the scores."""
            # The derivatives are about one by the number of people: too small for the half precision of some scores.
            precision = torch.promote_types(scores.dtype, torch.float32)
            ctx.save_for_backward(torch.from_numpy(gradient).to(precision).to(scores.device))
            return scores.new_tensor(value)

        @staticmethod
        def backward(ctx: Any, outer: Any) -> tuple[Any, None, None]:
            """Pass the derivative on, in the kind of the scores."""
            if torch.is_grad_enabled():  # with create_graph=True; a constant in that graph would be wrong in silence
                raise RuntimeError(
                    "RecourseLoss has no second derivatives; take those of the other parts of the loss without it."
                )
            (gradient,) = ctx.saved_tensors
            return (outer * gradient).to(outer.dtype), None, None

    class RecourseLoss(torch.nn.Module):
        r"""A term of a loss: how far apart the groups' distributions of the cost of recourse are.

        The term is :math:`\kappa\,(D + \text{hold}\cdot R)`. D compares what a yes costs the rejected people
        of each group, every cost divided by half of the upper quartile; it is zero where the distributions are equal.
        R is the mean squared change of the share of a person's group that is rejected since :meth:`hold_rejection`:
        without it, a model can also change whom it rejects.

        The cost of a person is the score that they lack, times their price. A score is not a cost: a network can make
        the distributions of its scores equal without moving a decision, by flattening them far from its boundary, and
        people are as far from a yes as before. Let ``scores`` be signed distances instead, to first order the score
        divided by the length of its gradient by the features (the user guide has the loop), and judge distances, or
        costs, of people that the model was not trained on.

        Parameters
        ----------
        groups : array-like, Series or DataFrame of n_people rows
            The group of each training person; several columns are crossed.
        kappa : float, default=1.0
            κ, in units of the mean loss.
        weights : array-like of shape (n_people,), optional
            Of people.
        min_rejected : float, default=5
            A group with fewer rejected people, in the batch, is left out of the comparison.
        softness : float, default=0.1
            How soft a decision is, relative to the median size of a score.
        hold : float, default=10.0
            Weight of R, relative to that of D.

        Attributes
        ----------
        kappa, hold : float
            They may be changed between steps.
        held_rejection : ndarray of shape (n_groups,) or None
            The shares that are held, or None before :meth:`hold_rejection`, when there is no such part.

        See Also
        --------
        equirecourse.equalizers.EqualRecourseBoosting : the same term in boosted trees.

        Examples
        --------
        >>> import torch
        >>> from equirecourse.torch import RecourseLoss
        >>> groups = ["a"] * 20 + ["b"] * 20
        >>> scores = torch.linspace(-2, 1, 20).repeat(2).requires_grad_()
        >>> criterion = RecourseLoss(groups)
        >>> criterion(scores).item() < 1e-6  # the groups have the same scores
        True
        >>> term = criterion(scores * torch.tensor([1.0, 3.0]).repeat_interleave(20))
        >>> term.item() > 0.1
        True
        >>> term.backward()
        >>> scores.grad.shape
        torch.Size([40])
        """

        def __init__(
            self,
            groups: Any,
            kappa: float = 1.0,
            *,
            weights: Any = None,
            min_rejected: float = 5,
            softness: float = 0.1,
            hold: float = HOLD,
        ) -> None:
            super().__init__()
            self.kappa = check_number(kappa, name="kappa", low=0.0)
            self.hold = check_number(hold, name="hold", low=0.0)
            self.held_rejection: Array | None = None
            self._groups = _check_groups(_on_cpu(groups))
            self._weights = _check_weights(_on_cpu(weights), len(self._groups.codes))
            self._min_rejected = check_number(min_rejected, name="min_rejected", low=1.0)
            self._softness = check_number(softness, name="softness", low=0.001, high=100.0)

        @torch.compiler.disable  # torch.compile would read NumPy's and Numba's code as its own, and cannot
        def forward(self, scores: Any, *, index: Any = None, prices: Any = None) -> Any:
            """Compute the term of some people.

            Parameters
            ----------
            scores : tensor of shape (n,) or (n, 1)
                Above zero is the favourable outcome, as for a loss "with logits".
            index : array-like of int, shape (n,), optional
                The positions of these people among those of ``groups``; needed unless they are all there, in order.
                A batch needs enough rejected people of each group: a few hundred people, rather than a few dozen.
            prices : array-like of shape (n,), optional
                What a unit of missing score costs each of them. No gradient passes through prices.

            Returns
            -------
            tensor of shape ()
                In the dtype and on the device of the scores. Zero where fewer than two groups have enough rejected
                people.
            """
            flat = _check_scores(scores)
            objective = self._objective(index, len(flat))
            term = self._term(objective, _on_cpu(flat), _check_prices(_on_cpu(prices), len(flat)))
            apply: Any = _FromNumpy.apply  # which PyTorch gives no types
            return apply(flat, term.value, term.gradient)

        @torch.compiler.disable
        def hold_rejection(self, scores: Any, *, index: Any = None) -> Array:
            """From now on, hold the rejection rate of each group where it is at these scores.

            Parameters
            ----------
            scores : tensor of shape (n,) or (n, 1)
                For example of the model that was trained without the term.
            index : array-like of int, shape (n,), optional
                As in a call.

            Returns
            -------
            ndarray of shape (n_groups,)
                The (soft) share of people of each group who are rejected.
            """
            flat = _check_scores(scores)
            objective = self._objective(index, len(flat))
            if not objective.weights.sum() > 0.0:
                raise ValueError("the weights of these people are all zero; hold the rejection rate of others.")
            self.held_rejection = objective.rejection(_on_cpu(flat))
            return self.held_rejection

        def extra_repr(self) -> str:
            """Groups and parameters, as they are printed."""
            return (
                f"n_people={len(self._weights)}, n_groups={len(self._groups)}, kappa={self.kappa:g}, "
                f"min_rejected={self._min_rejected:g}, softness={self._softness:g}, hold={self.hold:g}"
            )

        def _objective(self, index: Any, n: int) -> CostObjective:
            """What is minimised, for everybody or for the people of a batch."""
            groups, weights = self._groups, self._weights
            if index is not None:
                rows = _check_index(_on_cpu(index), n, len(weights))
                groups, weights = replace(groups, codes=groups.codes[rows]), weights[rows]
            elif n != len(weights):
                raise ValueError(
                    f"scores has {n} entries for the {len(weights)} people of groups; pass one score per person, or "
                    "index=, the positions of these people."
                )
            return CostObjective((groups,), weights, self._min_rejected, self._softness)

        def _term(self, objective: CostObjective, scores: Array, prices: Prices | None) -> Term:
            if not objective.weights.sum() > 0.0:  # nobody counts
                return Term(0.0, np.zeros(len(scores)))
            distance, drift = objective.terms(scores, prices, self.held_rejection)
            value, gradient = distance.value + self.hold * drift.value, distance.gradient + self.hold * drift.gradient
            return Term(self.kappa * value, self.kappa * gradient)

    def _on_cpu(values: Any) -> Any:
        """Make a NumPy array of a tensor, with fractions in double precision; leave all else as it is."""
        if not isinstance(values, torch.Tensor):
            return values
        values = values.detach().cpu()
        return (values.double() if values.is_floating_point() else values).contiguous().numpy()

    def _check_scores(scores: Any) -> Any:
        """Scores as a tensor with one dimension, still part of the graph."""
        if not (isinstance(scores, torch.Tensor) and scores.is_floating_point()):
            kind = scores.dtype if isinstance(scores, torch.Tensor) else type(scores).__name__
            raise ValueError(f"scores must be a tensor of floating-point numbers, got {kind}.")
        if scores.ndim != 1 and not (scores.ndim == 2 and scores.shape[1] == 1):
            raise ValueError(f"scores must have one score per person, got shape {tuple(scores.shape)}.")
        bad = int((~torch.isfinite(scores)).sum())
        if bad:
            raise ValueError(
                f"scores is NaN or infinite for {bad} of {len(scores)} people; check the features of the model, and "
                "its learning rate."
            )
        if len(scores) == 0:
            raise ValueError("scores is empty; leave out a batch without people.")
        return scores.reshape(-1)


def _check_groups(groups: Any) -> Groups:
    try:
        table = as_frame(groups)
        return check_groups(table, len(table), at_least=2)
    except ValueError as error:  # these sentences know the groups by the name that they have elsewhere
        raise ValueError(str(error).replace("sensitive_features", "groups")) from None


def _check_weights(weights: Any, n_people: int) -> Array:
    if weights is None:
        return np.ones(n_people)
    values = _numbers(weights, n_people, name="weights", each="weight per person of groups")
    if not values.sum() > 0.0:
        raise ValueError("weights are all zero; give some people a weight.")
    return values


def _check_prices(prices: Any, n: int) -> Prices | None:
    if prices is None:
        return None
    return Prices(_numbers(prices, n, name="prices", each="price per score"), np.ones(n))


def _numbers(given: Any, n: int, *, name: str, each: str) -> Array:
    """Finite numbers that are not negative."""
    refuse_masked(given, name=name)
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one {each}, got {shown(given)}.") from None
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape} and {n} are needed; pass one {each}.")
    bad = ~(np.isfinite(values) & (values >= 0.0))
    if bad.any():
        raise ValueError(f"{name} must be finite and not negative, got {values[bad][0]:g}.")
    return values


def _check_index(index: Any, n: int, n_people: int) -> Ints:
    rows = np.asarray(index)
    if rows.shape != (n,):
        raise ValueError(f"index has shape {rows.shape} for {n} scores; pass the position of each of these people.")
    if rows.dtype.kind not in "iu":
        raise ValueError(f"index must be whole numbers, positions among the people of groups, got {rows.dtype}.")
    outside = rows[(rows < 0) | (rows >= n_people)]
    if len(outside):
        raise ValueError(
            f"index must be from 0 to {n_people - 1}, positions among the people of groups, got {outside[0]}."
        )
    return rows.astype(np.intp)
