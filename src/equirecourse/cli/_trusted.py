"""What a model file may hold if it is to be loaded without consent.

A skops file is a tree of nodes in JSON, and arrays beside it. Each node names a loader of skops and a type or function
that this loader imports and builds, or hands over. The names that skops trusts by itself are not enough of a limit:
they differ between versions, and some loaders of earlier versions build more than they declare. Here each loader has
its own list of names, read from the JSON before skops sees it, and a loader or name that is not listed is refused.

Written after the source of skops 0.16. Loaders and protocol (2) were compared with 0.11 to 0.14, which have no loader
that 0.16 lacks, and the tests were run with them.
"""

from __future__ import annotations

import functools
import json
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from equirecourse.cli._indices import is_sound

__all__ = ["UntrustedError", "check_loaded", "check_schema"]

PROTOCOL = 2

# Elementwise, and without effects: for FunctionTransformer.
_UFUNCS = (
    "abs", "absolute", "arcsinh", "arctan", "cbrt", "ceil", "exp", "exp2", "expm1", "fabs", "floor", "log", "log10",
    "log1p", "log2", "negative", "reciprocal", "rint", "sign", "sqrt", "square", "tanh", "trunc",
)  # fmt: skip
# Earlier versions of NumPy named the module of a ufunc differently.
_UFUNC_MODULES = ("numpy", "numpy._core._multiarray_umath", "numpy.core._multiarray_umath")

_FUNCTIONS = {
    "sklearn.feature_selection._univariate_selection": ("chi2", "f_classif", "f_regression"),
    "sklearn.feature_selection._mutual_info": ("mutual_info_classif",),
    # Scorers of a search; predictions do not call them.
    "sklearn.metrics._classification": (
        "accuracy_score", "balanced_accuracy_score", "brier_score_loss", "f1_score", "jaccard_score", "log_loss",
        "matthews_corrcoef", "precision_score", "recall_score",
    ),
    "sklearn.metrics._ranking": ("average_precision_score", "roc_auc_score"),
    # HistGradientBoosting with categories keeps a partial of it.
    "sklearn.utils.validation": ("check_array",),
}  # fmt: skip

# Parts of fitted estimators that are no estimators themselves.
_PARTS = {
    "equirecourse.actions._action_set": ("ActionSet",),
    "equirecourse.actions._feature": ("Feature", "Percentiles"),
    "equirecourse.actions._rules": ("Condition", "Link", "Rule"),
    "lightgbm.basic": ("Booster",),
    "lightgbm.sklearn": ("LGBMClassifier",),
    "sklearn._loss.link": ("HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink", "MultinomialLogit"),
    "sklearn._loss.loss": (
        "AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss",
        "HalfPoissonLoss", "HalfSquaredError", "HuberLoss", "PinballLoss",
    ),
    "sklearn.calibration": ("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    "sklearn.compose._column_transformer": ("make_column_selector",),
    "sklearn.ensemble._hist_gradient_boosting.binning": ("_BinMapper",),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.gaussian_process._gpc": ("_BinaryGaussianProcessClassifierLaplace",),
    "sklearn.gaussian_process.kernels": (
        "CompoundKernel", "ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation", "Matern", "Product",
        "RBF", "RationalQuadratic", "Sum", "WhiteKernel",
    ),
    "sklearn.metrics._scorer": ("_CurveScorer", "_PassthroughScorer", "_Scorer"),
    "sklearn.model_selection._split": (
        "GroupKFold", "KFold", "ShuffleSplit", "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit",
    ),
    "sklearn.multiclass": ("_ConstantPredictor",),
    "sklearn.neural_network._stochastic_optimizers": ("AdamOptimizer", "SGDOptimizer"),
    "sklearn.utils._metadata_requests": ("MetadataRequest", "MethodMetadataRequest"),
    "xgboost.core": ("Booster",),
    "xgboost.sklearn": ("XGBClassifier", "XGBRFClassifier"),
}  # fmt: skip

# They open the files that their input names, and a step before them can make up that input.
_READERS = {"CountVectorizer", "HashingVectorizer", "TfidfVectorizer"}

_LOSSES = {
    "sklearn._loss._loss": (
        "CyAbsoluteError", "CyExponentialLoss", "CyHalfBinomialLoss", "CyHalfGammaLoss", "CyHalfMultinomialLoss",
        "CyHalfPoissonLoss", "CyHalfSquaredError", "CyHuberLoss", "CyPinballLoss",
    ),
    "sklearn.linear_model._sgd_fast": (
        "EpsilonInsensitive", "Hinge", "Huber", "Log", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge",
        "SquaredLoss",
    ),
}  # fmt: skip

_BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}


class UntrustedError(Exception):
    """A file holds something that is not on the list; the message names it."""


def _join(names: dict[str, tuple[str, ...]]) -> set[str]:
    return {f"{module}.{name}" for module, inside in names.items() for name in inside}


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__name__}"


@functools.cache
def _estimators() -> frozenset[str]:
    """Estimators of scikit-learn and of this package: none of them runs code that is not handed to it."""
    from sklearn.base import BaseEstimator
    from sklearn.utils import all_estimators

    from equirecourse import equalizers

    known = {_name(kind) for name, kind in all_estimators() if name not in _READERS}
    own = [getattr(equalizers, name) for name in equalizers.__all__]
    own = [kind for kind in own if isinstance(kind, type) and issubclass(kind, BaseEstimator)]
    return frozenset({name for name in known if name.startswith("sklearn.")} | {_name(kind) for kind in own})


@functools.cache
def _functions() -> frozenset[str]:
    return frozenset(_join(_FUNCTIONS) | _join(dict.fromkeys(_UFUNC_MODULES, _UFUNCS)))


@functools.cache
def _classes() -> frozenset[str]:
    """Types that may stand in a file as values: of keys, of columns."""
    plain = {_name(kind) for kind in (bool, dict, float, int, list, str)}
    scalars = {_name(kind) for kind in np.sctypeDict.values()} - {"numpy.object_", "numpy.void"}
    return frozenset(plain | scalars | {"numpy.bool_", "collections.OrderedDict"})


@functools.cache
def _names(loader: str) -> frozenset[str]:
    """Names that a loader of skops may be given; none for a loader that is not known."""
    scalars = {name for name in _classes() if name.startswith("numpy.")}
    listed = {
        "BytearrayNode": {"builtins.bytearray"},
        "BytesNode": {"builtins.bytes"},
        "DTypeNode": {"numpy.dtype"},
        "DefaultDictNode": {"collections.defaultdict"},
        "DictNode": {"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"},
        "FunctionNode": _functions(),
        "ListNode": {"builtins.list"},
        "LossNode": _join(_LOSSES),
        "MaskedArrayNode": {"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"},
        "NdArrayNode": {"numpy.ndarray"} | scalars,
        "ObjectNode": _estimators() | _join(_PARTS),
        "PartialNode": {"functools.partial"},
        "RandomGeneratorNode": {"numpy.random._generator.Generator"},
        "RandomStateNode": {"numpy.random.mtrand.RandomState"},
        "SetNode": {"builtins.set"},
        "SliceNode": {"builtins.slice"},
        "SparseMatrixNode": {_name(kind) for kind in (sp.csc_array, sp.csc_matrix, sp.csr_array, sp.csr_matrix)},
        "TreeNode": {"sklearn.tree._tree.Tree"},
        "TupleNode": {"builtins.tuple", "sklearn.impute._iterative._ImputerTriplet"},
        "TypeNode": _classes(),
    }
    return frozenset(listed.get(loader, ()))


def check_schema(schema: Any) -> None:
    """Refuse the JSON of a skops file that names anything but what is listed.

    Parameters
    ----------
    schema : dict
        As read from ``schema.json``.

    Raises
    ------
    UntrustedError
        The message is what the file holds.
    """
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int or protocol != PROTOCOL:
        raise UntrustedError(f"nodes of protocol {protocol!r} of skops, not {PROTOCOL}")
    nodes = list(_nodes(schema))
    for node in nodes:
        loader, module, name = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
        # A JsonNode builds text, numbers and their lists, whatever type it claims to be.
        if loader != "JsonNode" and (not isinstance(loader, str) or f"{module}.{name}" not in _names(loader)):
            raise UntrustedError(f"{module}.{name} ({loader})")
    _check_generators(nodes)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node, wherever it hides; without recursion, which a deep file would exhaust."""
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if not value.keys().isdisjoint(("__loader__", "__module__", "__class__")):
                yield value
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


def _check_generators(nodes: list[dict[str, Any]]) -> None:
    """Refuse random generators of a made-up kind: skops calls whatever in numpy.random has the name.

    skops reads a node only once and then goes by its ``__id__``, so that all nodes with the same one are looked at.
    """
    same: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    try:
        for node in nodes:
            same[node.get("__id__")].append(node)
        for generator in nodes:
            if generator["__loader__"] != "RandomGeneratorNode":
                continue
            for state in same[generator["content"]["bit_generator"]["__id__"]]:
                for kind in same[state["content"]["bit_generator"]["__id__"]]:
                    given = json.loads(kind["content"])
                    if (state["__loader__"], kind["__loader__"]) != ("DictNode", "JsonNode"):
                        raise UntrustedError("a random generator of no known kind")
                    if given not in _BIT_GENERATORS:
                        raise UntrustedError(f"a random generator of the kind {given!r}")
    except (KeyError, TypeError, ValueError):
        raise UntrustedError("a random generator of no known kind") from None


def check_loaded(model: Any) -> None:
    """Refuse a model that holds a function or class that is not listed, or arrays that compiled code cannot follow.

    A second look, at what skops has built.

    Parameters
    ----------
    model : object
        As loaded.

    Raises
    ------
    UntrustedError
        The message is what the model holds.
    ValueError
        If an index is wrong.
    """
    stack, seen = [model], {}
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # kept, so that no other object gets its id
        if isinstance(value, type):
            if _name(value) not in _classes():
                raise UntrustedError(_name(value))
        elif isinstance(value, np.ufunc):
            if value.__name__ not in _UFUNCS:
                raise UntrustedError(f"numpy.{value.__name__}")
        elif isinstance(value, types.MethodType) or (callable(value) and hasattr(value, "__name__")):
            if f"{value.__module__}.{value.__name__}" not in _functions():
                raise UntrustedError(f"{value.__module__}.{value.__name__}")
        else:
            if not is_sound(value):
                raise ValueError(f"the indices of its {type(value).__name__} lead outside")
            stack.extend(_inside(value))


def _inside(value: Any) -> Iterable[Any]:
    """What an object holds."""
    if isinstance(value, dict):
        return [*value, *value.values(), *getattr(value, "__dict__", {}).values()]
    if isinstance(value, list | tuple | set):
        return value
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype == object else ()
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values(), *vars(value).values()]
    # Isotonic regression builds its interpolation anew from its numbers, and pandas its frames: neither is in a file.
    if type(value).__module__.startswith(("scipy.interpolate.", "pandas.")):
        return ()
    return getattr(value, "__dict__", {}).values()
