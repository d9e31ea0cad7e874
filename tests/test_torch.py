"""The term of a loss in PyTorch: the objective's value and gradient, in any model, precision and batch."""

import copy
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from equirecourse._validation import check_groups
from equirecourse.equalizers._objective import CostObjective, Prices

SENTENCE = 'equirecourse.torch needs PyTorch; run pip install "equirecourse[torch]".'


WITHOUT_TORCH = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)

sys.meta_path.insert(0, NoTorch())
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


def test_without_pytorch_one_sentence_says_what_to_install():
    code = (
        WITHOUT_TORCH
        + """
import equirecourse.torch
for line in (
    "from equirecourse.torch import RecourseLoss", "equirecourse.torch.RecourseLoss", "equirecourse.torch.Recourse"
):
    try:
        exec(line)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""
    )
    other = "AttributeError: module 'equirecourse.torch' has no attribute 'Recourse'"
    assert run(code) == [f"ImportError: {SENTENCE}"] * 2 + [other]


try:
    import torch
except ImportError:
    torch = None
else:
    from equirecourse.torch import RecourseLoss

needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")


@pytest.fixture(autouse=True)
def one_thread():
    if torch is not None:
        torch.set_num_threads(1)


def make_scores(n=120, *, n_groups=3, seed=0):
    """Scores with a gap: the later the group, the wider its scores."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % n_groups
    scores = rng.normal(size=n) * (1.0 + groups)
    return scores, groups, rng.uniform(0.5, 2.0, n)


def objective_of(groups, weights=None, *, min_rejected=5, softness=0.1):
    n = len(groups)
    return CostObjective((check_groups(groups, n),), np.ones(n) if weights is None else weights, min_rejected, softness)


@needs_torch
@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_of_everybody_it_is_the_distance_of_the_objective(priced, weighted):
    scores, groups, some = make_scores()
    weights, prices = (some if weighted else None), (some[::-1].copy() if priced else None)
    tensor = torch.tensor(scores, requires_grad=True)
    term = RecourseLoss(groups, 2.0, weights=weights)(tensor, prices=prices)
    term.backward()
    known = None if prices is None else Prices(prices, np.ones(len(scores)))
    wanted = objective_of(groups, weights).distance(scores, known)
    assert wanted.value > 0.01
    assert term.item() == pytest.approx(2.0 * wanted.value, rel=1e-12)
    np.testing.assert_allclose(tensor.grad, 2.0 * wanted.gradient, rtol=1e-12, atol=0)


@needs_torch
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("priced", [False, True])
def test_the_gradient_is_that_of_the_value(batch, priced):
    scores, groups, some = make_scores(60, n_groups=2)
    criterion = RecourseLoss(groups, 1.5, weights=some, hold=3.0, softness=0.2)
    criterion.hold_rejection(torch.tensor(scores + 0.5))
    rows = np.random.default_rng(1).permutation(60)[:45] if batch else np.arange(60)
    options = {"index": rows if batch else None, "prices": some[::-1][rows] if priced else None}
    tensor = torch.tensor(scores[rows], requires_grad=True)
    assert torch.autograd.gradcheck(lambda f: criterion(f, **options), tensor, eps=1e-6, atol=1e-5, rtol=1e-3)


@needs_torch
def test_the_gradient_reaches_the_parameters_of_a_model():
    _, groups, _ = make_scores(200, n_groups=2)
    X = torch.tensor(np.random.default_rng(0).normal(size=(200, 3)) * (1.0 + groups)[:, None])
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
    criterion = RecourseLoss(groups)
    criterion(model(X)).backward()  # a column of scores will do
    weight = model[0].weight
    for place in ((0, 0), (4, 2)):
        values = []
        for step in (1e-5, -1e-5):
            moved = copy.deepcopy(model)
            with torch.no_grad():
                moved[0].weight[place] += step
                values.append(criterion(moved(X)).item())
        assert weight.grad[place].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-2, abs=1e-6)


@needs_torch
@pytest.mark.parametrize(
    ("dtype", "rel"), [("float64", 1e-12), ("float32", 1e-5), ("float16", 0.02), ("bfloat16", 0.1)]
)
def test_value_and_gradient_have_the_dtype_of_the_scores(dtype, rel):
    scores, groups, _ = make_scores()
    tensor = torch.tensor(scores, dtype=getattr(torch, dtype), requires_grad=True)
    term = RecourseLoss(groups)(tensor)
    term.backward()
    assert term.dtype == tensor.grad.dtype == tensor.dtype
    assert term.shape == ()
    wanted = objective_of(groups).distance(tensor.detach().double().numpy())
    assert term.item() == pytest.approx(wanted.value, rel=rel)
    np.testing.assert_allclose(tensor.grad.double(), wanted.gradient, rtol=rel, atol=rel * abs(wanted.gradient).max())


@needs_torch
def test_scaled_half_precision_loses_no_small_gradients():
    scores, groups, _ = make_scores(60_000)
    tensor = torch.tensor(scores, dtype=torch.float16, requires_grad=True)
    (RecourseLoss(groups)(tensor).float() * 2.0**10).backward()  # as torch.amp.GradScaler does
    wanted = objective_of(groups).distance(tensor.detach().double().numpy()).gradient
    np.testing.assert_allclose(tensor.grad.double() / 2.0**10, wanted, rtol=0.01, atol=1e-3 * abs(wanted).max())


@needs_torch
def test_a_batch_is_the_objective_of_its_people():
    scores, groups, some = make_scores(300)
    criterion = RecourseLoss(list(groups.astype(str)), weights=torch.tensor(some))
    rows = np.random.default_rng(0).integers(0, 300, 90)  # people may be drawn twice
    wanted = objective_of(groups[rows], some[rows]).distance(scores[rows])
    for index in (rows, rows.tolist(), torch.tensor(rows), torch.tensor(rows, dtype=torch.int32)):
        assert criterion(torch.tensor(scores[rows]), index=index).item() == pytest.approx(wanted.value, rel=1e-12)
    everybody = criterion(torch.tensor(scores), index=torch.arange(300))
    assert everybody.item() == criterion(torch.tensor(scores)).item()


@needs_torch
def test_a_batch_may_lack_a_group_weights_or_rejected_people():
    scores, groups, _ = make_scores(n_groups=2)
    weights = np.where(np.arange(120) < 20, 0.0, 1.0)
    criterion = RecourseLoss(groups, weights=weights)
    for rows, shown in (
        (np.flatnonzero(groups == 1), scores[groups == 1]),  # one group
        (np.arange(20), scores[:20]),  # nobody with a weight
        (np.arange(120), abs(scores)),  # nobody rejected
        (np.arange(120), np.zeros(120)),  # no scores to speak of, as of a model that begins at zero
        (np.array([50]), scores[[50]]),
    ):
        tensor = torch.tensor(shown, requires_grad=True)
        term = criterion(tensor, index=rows)
        term.backward()
        assert term.item() == 0.0
        assert not tensor.grad.any()


@needs_torch
def test_the_drift_counts_once_a_rejection_rate_is_held():
    scores, groups, _ = make_scores()
    now, later = torch.tensor(scores), torch.tensor(scores - 0.7, requires_grad=True)
    criterion = RecourseLoss(groups, 2.0, hold=3.0)
    free = criterion(later).item()
    assert criterion.held_rejection is None
    rate = criterion.hold_rejection(now)
    objective = objective_of(groups)
    np.testing.assert_array_equal(rate, objective.rejection(scores))
    np.testing.assert_array_equal(rate, criterion.held_rejection)
    drift = objective.drift(scores - 0.7, rate).value
    assert criterion(later).item() - free == pytest.approx(2.0 * 3.0 * drift)
    assert drift > 0.01
    criterion.hold = 0.0
    assert criterion(later).item() == free
    criterion.kappa = 0.0
    assert criterion(later).item() == 0.0


@needs_torch
def test_several_columns_are_crossed_and_the_criterion_is_a_module():
    scores, groups, some = make_scores()
    criterion = RecourseLoss({"sex": groups % 2, "old": some > 1}, 0.5, min_rejected=8)
    assert repr(criterion) == (
        "RecourseLoss(n_people=120, n_groups=4, kappa=0.5, min_rejected=8, softness=0.1, hold=10)"
    )
    assert list(criterion.parameters()) == []
    criterion.hold_rejection(torch.tensor(scores))
    again = copy.deepcopy(criterion).to(torch.float32)
    assert again(torch.tensor(scores)).item() == criterion(torch.tensor(scores)).item()


@needs_torch
@pytest.mark.filterwarnings("ignore:.*not a leaf Tensor:UserWarning")  # the compiler looks at what it should not
def test_it_may_be_part_of_a_compiled_step():
    scores, groups, _ = make_scores()
    tensor, criterion = torch.tensor(scores, requires_grad=True), RecourseLoss(groups)

    def step(f):
        return f.square().mean() + criterion(f)

    term = torch.compile(step, backend="eager")(tensor)
    assert term.item() == step(tensor).item()
    wanted, found = (torch.autograd.grad(value, tensor)[0] for value in (step(tensor), term))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@needs_torch
def test_a_second_derivative_is_refused_not_wrong():
    scores, groups, _ = make_scores()
    tensor = torch.tensor(scores, requires_grad=True)
    with pytest.raises(RuntimeError, match="RecourseLoss has no second derivatives"):
        torch.autograd.grad(RecourseLoss(groups)(tensor), tensor, create_graph=True)


@needs_torch
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kappa": -1}, "kappa must be a finite number of at least 0, got -1."),
        ({"kappa": float("nan")}, "kappa must be a finite number of at least 0, got nan."),
        ({"hold": -0.5}, "hold must be a finite number of at least 0, got -0.5."),
        ({"softness": 0}, "softness must be a finite number from 0.001 to 100, got 0."),
        ({"min_rejected": 0}, "min_rejected must be a finite number of at least 1, got 0."),
        ({"groups": ["a"] * 6}, "groups has 1 group ('a') and a comparison needs at least 2; pass a column with "
         "several values."),
        ({"groups": ["a", None, "b"]}, "groups is missing for 1 of 3 people; drop them, or give them a group of their "
         "own such as 'unknown'."),
        ({"groups": "ab"}, "groups must hold one group per person, got the single value 'ab'."),
        ({"weights": np.ones(5)}, "weights has shape (5,) and 6 are needed; pass one weight per person of groups."),
        ({"weights": [1, 1, 1, 1, 1, -2]}, "weights must be finite and not negative, got -2."),
        ({"weights": np.zeros(6)}, "weights are all zero; give some people a weight."),
        ({"weights": ["heavy"] * 6}, "weights must be numbers, one weight per person of groups, got ['heavy', 'heavy', "
         "'heavy', 'heavy', 'heavy', 'heavy']."),
    ],
)  # fmt: skip
def test_bad_parameters(options, sentence):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        RecourseLoss(**{"groups": list("ababab"), **options})
    assert str(caught.value) == sentence


@needs_torch
@pytest.mark.parametrize(
    ("scores", "options", "sentence"),
    [
        ([0.0] * 5, {}, "scores has 5 entries for the 6 people of groups; pass one score per person, or index=, the "
         "positions of these people."),
        ([0.0, float("nan"), 1, 2, float("inf"), 4], {}, "scores is NaN or infinite for 2 of 6 people; check the "
         "features of the model, and its learning rate."),
        ([], {"index": []}, "scores is empty; leave out a batch without people."),
        ([[0.0, 1.0]] * 6, {}, "scores must have one score per person, got shape (6, 2)."),
        (1.0, {}, "scores must have one score per person, got shape ()."),
        ([1, 2, 3, 4, 5, 6], {}, "scores must be a tensor of floating-point numbers, got torch.int64."),
        ([0.0, 1.0], {"index": [0, 6]}, "index must be from 0 to 5, positions among the people of groups, got 6."),
        ([0.0, 1.0], {"index": [0, -1]}, "index must be from 0 to 5, positions among the people of groups, got -1."),
        ([0.0, 1.0], {"index": [0, 1, 2]}, "index has shape (3,) for 2 scores; pass the position of each of these "
         "people."),
        ([0.0, 1.0], {"index": [True, False]}, "index must be whole numbers, positions among the people of groups, got "
         "bool."),
        ([0.0] * 6, {"prices": [1.0] * 5}, "prices has shape (5,) and 6 are needed; pass one price per score."),
        ([0.0] * 6, {"prices": [1.0] * 5 + [float("nan")]}, "prices must be finite and not negative, got nan."),
    ],
)  # fmt: skip
def test_bad_input(scores, options, sentence):
    criterion = RecourseLoss(list("ababab"))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole sentence is compared
        criterion(torch.tensor(scores), **options)
    assert str(caught.value) == sentence


@needs_torch
def test_what_is_not_a_tensor_has_no_gradient_and_is_refused():
    with pytest.raises(ValueError, match="scores must be a tensor of floating-point numbers, got ndarray"):
        RecourseLoss(list("ab"))(np.zeros(2))
    criterion = RecourseLoss(list("aabb"), weights=[0, 1, 1, 1])
    with pytest.raises(ValueError, match="the weights of these people are all zero"):
        criterion.hold_rejection(torch.zeros(1), index=[0])


def make_gap(n=3000, seed=0):
    """Two groups, of which one is wider in the first feature: its rejected people are further away."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] *= 0.7 + 1.2 * group
    y = X @ [0.8, 1.0, 0.5, 0.0] + rng.normal(scale=0.8, size=n) > 0
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), group


def scores_of(model, X):
    return model(X)


def distances_of(model, X):
    """Signed distances to the boundary, to first order."""
    x = X.clone().requires_grad_()
    scores = model(x)
    (slopes,) = torch.autograd.grad(scores.sum(), x, create_graph=True)
    return scores / slopes.norm(dim=1).clamp_min(1e-3)


def train(kappa, costs=scores_of, *, batch=3000, epochs=400):
    """The loop of the user guide."""
    X, y, group = make_gap()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    bce, criterion = torch.nn.BCEWithLogitsLoss(), RecourseLoss(group, kappa)
    for epoch in range(epochs):
        if epoch == epochs // 3:
            criterion.hold_rejection(costs(model, X))
        for rows in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            loss = bce(model(X[rows]), y[rows])
            if epoch >= epochs // 3 and kappa > 0:
                loss = loss + criterion(costs(model, X[rows]), index=rows)
            loss.backward()
            optimizer.step()
    return model


def distances_to_boundary(model, X):
    """Of rejected people: to the boundary on the way to each of the nearest of many accepted points; the least."""
    points = torch.randn(30_000, 4, generator=torch.Generator().manual_seed(0)) * torch.tensor([2.0, 1.3, 1.3, 1.3])
    found = []
    with torch.no_grad():
        points = points[model(points) > 0]
        for people in X.split(200):
            nearest = torch.cdist(people, points).topk(40, largest=False).indices
            ways = points[nearest] - people[:, None]
            low, high = torch.zeros(nearest.shape), torch.ones(nearest.shape)
            for _ in range(12):
                middle = (low + high) / 2
                yes = model((people[:, None] + middle[..., None] * ways).reshape(-1, 4)).reshape(middle.shape) > 0
                low, high = torch.where(yes, low, middle), torch.where(yes, middle, high)
            found.append((high * ways.norm(dim=2)).min(dim=1).values)
    return torch.cat(found).numpy()


def judge(model):
    """Accuracy, acceptance, and the transport gaps of missing scores and of distances, on new people."""
    X, y, group = make_gap(3000, seed=1)
    with torch.no_grad():
        scores = model(X)
    rejected = (scores <= 0).numpy()
    gaps = []
    for costs in (-scores.numpy()[rejected], distances_to_boundary(model, X[rejected])):
        one, other = (costs[group[rejected] == label] for label in (0, 1))
        gaps.append(wasserstein_distance(one, other) / costs.mean())
    return ((scores > 0) == (y > 0)).float().mean().item(), 1.0 - rejected.mean(), *gaps


@pytest.fixture(scope="module")
def plain():
    return judge(train(0.0))


@needs_torch
@pytest.mark.parametrize("loop", [{}, {"batch": 500, "epochs": 90}])
def test_a_network_with_the_term_has_equal_missing_scores_on_new_people(plain, loop):
    accuracy, acceptance, scores, _ = judge(train(3.0, **loop))
    assert plain[2] > 0.2
    assert scores < 0.5 * plain[2]
    assert accuracy > plain[0] - 0.02
    assert abs(acceptance - plain[1]) < 0.03


@needs_torch
def test_scores_alone_leave_the_distances_and_distances_in_their_place_do_not(plain):
    bent, moved = judge(train(3.0)), judge(train(10.0, distances_of))
    assert plain[3] > 0.3
    assert bent[3] > 0.85 * plain[3]  # the limit that the user guide speaks of
    assert moved[3] < 0.8 * plain[3]
    assert moved[0] > plain[0] - 0.02
    assert abs(moved[1] - plain[1]) < 0.03
