"""The figure of the costs by group shows the people it was given, and says whom it cannot show."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from equirecourse import RecourseFrame
from equirecourse.datasets import make_ring_groups, make_tilted_groups
from equirecourse.plotting import RecourseDisplay
from equirecourse.recourse import boundary_costs

KINDS = ["ecdf", "hist", "box"]


def drawn(people, **kwargs):
    display = RecourseDisplay.from_costs(
        people.costs, rejected=people.rejected, sensitive_features=people.group, **kwargs
    )
    display.figure_.canvas.draw()
    return display


def words(display):
    """All text of the axes that speaks of groups."""
    return [t.get_text() for t in [*display.legend_.get_texts(), *display.ax_.get_yticklabels()]]


def test_legend_counts_are_the_rejected_counts(people):
    display = drawn(people)
    for label, rejected, without in zip("abc", display.rejected, display.without_recourse, strict=True):
        text = next(t for t in words(display) if t.startswith(f"{label}:"))
        assert f"({rejected} rejected" in text
        assert ("without recourse" in text) == (without > 0)
        assert rejected == (people.rejected & (people.group == label)).sum()
    assert display.without_recourse.tolist() == [0, 8, 0]


def test_counts_and_means_are_those_of_the_recourse_frame(people):
    display = drawn(people)
    frame = RecourseFrame(costs=people.costs, rejected=people.rejected, sensitive_features=people.group, random_state=0)
    np.testing.assert_array_equal(display.rejected, frame.by_group["rejected"])
    np.testing.assert_array_equal(display.people, frame.by_group["people"])
    np.testing.assert_allclose(display.means, frame.by_group["mean"])


def test_ecdf_ends_at_the_share_with_recourse(people):
    display = drawn(people)
    for curve, costs, without in zip(display.artists_, display.costs, display.without_recourse, strict=True):
        finite = costs[np.isfinite(costs)]
        np.testing.assert_array_equal(curve.get_xdata()[1:], finite)
        assert curve.get_ydata()[-1] == pytest.approx(1 - without / len(costs))


@pytest.mark.parametrize("kind", KINDS)
def test_mean_markers_are_at_the_means(people, kind):
    display = drawn(people, kind=kind)
    np.testing.assert_allclose([marker.get_xdata()[0] for marker in display.mean_markers_], display.means)


def test_histogram_bars_hold_everybody_on_the_axis(people):
    display = drawn(people, kind="hist", max_cost=2.0)
    for curve, costs in zip(display.artists_, display.costs, strict=True):
        assert curve.get_data().values.sum() == pytest.approx((costs <= 2.0).sum() / len(costs))


def test_costs_beyond_the_axis_are_counted(people):
    display = drawn(people, max_cost=1.0)
    finite = people.costs[people.rejected & np.isfinite(people.costs)]
    assert display.ax_.get_xlim() == (0.0, 1.0)
    assert f"{(finite > 1.0).sum()} of {len(finite)} costs lie beyond 1" in display.ax_.get_xlabel()


def test_box_counts_the_outliers_it_hides():
    costs = np.r_[np.linspace(1, 2, 50), 40.0, 50.0, np.linspace(1, 2, 30)]
    group = np.repeat(["x", "y"], [52, 30])
    display = RecourseDisplay.from_costs(costs, sensitive_features=group, kind="box")
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [
        "x\n52 rejected, 2 beyond the whiskers",
        "y\n30 rejected",
    ]
    assert display.ax_.get_xlim()[1] < 40
    first = display.artists_[0]
    low, high = np.quantile(costs[:52], [0.25, 0.75])
    assert (first.get_x(), first.get_width()) == pytest.approx((low, high - low))


@pytest.mark.parametrize("kind", KINDS)
def test_plot_does_not_change_the_data(people, kind):
    before = people.costs.copy()
    display = drawn(people, kind=kind)
    costs, means = [c.copy() for c in display.costs], display.means.copy()
    display.plot(kind="box").plot(kind="hist")
    np.testing.assert_array_equal(people.costs, before)
    np.testing.assert_array_equal(display.means, means)
    for now, then in zip(display.costs, costs, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("kind", KINDS)
def test_given_axes_are_used(people, kind):
    figure, axes = plt.subplots(1, 2)
    display = drawn(people, kind=kind, ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert not axes[0].has_data()
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["$x_1$ <b>", r"\frac{$1}{$2}", "_hidden", "100 % & #{}", "two\nlines"])
def test_hostile_group_names_are_shown_as_text(people, kind, name):
    group = np.where(people.group == "a", name, people.group)
    display = RecourseDisplay.from_costs(
        people.costs, rejected=people.rejected, sensitive_features={"$a$ and $b$": group}, kind=kind
    )
    display.figure_.canvas.draw()
    shown = " ".join(name.split())
    texts = [*display.legend_.get_texts(), *display.ax_.get_yticklabels()]
    rendered = [t._preprocess_math(t.get_text()) for t in texts]
    assert any(text.startswith(shown) and not math for text, math in rendered)


def test_long_group_names_are_cut_in_the_middle(people):
    group = np.where(people.group == "a", "begin" + "x" * 200 + "end", people.group)
    text = drawn(people.__class__(costs=people.costs, rejected=people.rejected, group=group))
    assert any(w.startswith("begin") and "…" in w and "end:" in w for w in words(text))


@pytest.mark.parametrize("kind", KINDS)
def test_many_groups_are_all_in_the_figure(kind):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"city": rng.integers(0, 10, 3000), "sex": rng.choice(["f", "m"], 3000)})
    display = RecourseDisplay.from_costs(rng.gamma(2, 1, 3000), sensitive_features=frame, kind=kind)
    display.figure_.canvas.draw()
    assert len(display.artists_) == len(display.labels) == 20
    styles = {(line.get_color(), line.get_linestyle()) for line in display.artists_} if kind == "ecdf" else range(20)
    assert len(styles) == 20


@pytest.mark.parametrize("kind", KINDS)
def test_groups_without_costs_are_named_and_not_drawn(kind):
    costs = np.array([1.0, 2.0, 0.0, 0.0, np.inf, np.inf])
    group = ["a", "a", "b", "b", "c", "c"]
    display = RecourseDisplay.from_costs(costs, sensitive_features=group, kind=kind)
    display.figure_.canvas.draw()
    assert len(display.artists_) == len(display.mean_markers_) == 1
    text = " | ".join(words(display))
    assert "0 rejected of 2" in text
    assert "2 without recourse" in text


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_rejected_is_an_empty_figure_that_says_so(kind):
    display = RecourseDisplay.from_costs(np.zeros(6), sensitive_features=list("aaabbb"), kind=kind)
    display.figure_.canvas.draw()
    assert sum("0 rejected of 3" in word for word in words(display)) == 2


def test_from_estimator_draws_boundary_costs():
    toy = make_tilted_groups(random_state=0)
    model = LogisticRegression().fit(toy.data, toy.target)
    display = RecourseDisplay.from_estimator(model, toy.data, sensitive_features=toy.sensitive_features)
    found = boundary_costs(model, toy.data)
    np.testing.assert_allclose(np.sort(np.concatenate(display.costs)), np.sort(found.costs[found.rejected]))
    assert "feature space" not in display.ax_.get_xlabel()


def test_feature_space_is_said_on_the_axis():
    toy = make_ring_groups(random_state=0)
    model = SVC().fit(toy.data, toy.target)
    display = RecourseDisplay.from_estimator(model, toy.data, sensitive_features=toy.sensitive_features)
    assert "feature space" in display.ax_.get_xlabel()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "violin"}, "kind must be one of 'ecdf', 'hist', 'box', got 'violin'"),
        ({"max_cost": 0}, "max_cost must be positive"),
        ({"max_cost": np.inf}, "max_cost must be a finite number"),
        ({"ax": "left"}, "ax must be a matplotlib Axes or None, got str"),
    ],
)
def test_bad_options_are_one_sentence(people, changes, message):
    with pytest.raises(ValueError, match=message) as error:
        drawn(people, **changes)
    assert "\n" not in str(error.value)


def test_groups_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="the same groups, got 1, 2 and 2 of them"):
        RecourseDisplay(costs=[[1.0]], labels=["a", "b"], people=[1, 1])
