"""The figure of a boundary: regions where the model says so, people where they are, and the paper's two toy sets."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from equirecourse import EqualRecourseSVC, recourse_gap
from equirecourse.datasets import make_ring_groups, make_tilted_groups
from equirecourse.plotting import BoundaryDisplay, plot_boundaries
from equirecourse.recourse import boundary_costs


@pytest.fixture(scope="module")
def tilted():
    return make_tilted_groups(random_state=0)


@pytest.fixture(scope="module")
def models(tilted):
    return [
        EqualRecourseSVC(kernel="linear", recourse_penalty=penalty).fit(
            tilted.data, tilted.target, sensitive_features=tilted.sensitive_features
        )
        for penalty in (0, np.inf)
    ]


def draw(model, toy, y=None, **kwargs):
    display = BoundaryDisplay.from_estimator(model, toy.data, y, sensitive_features=toy.sensitive_features, **kwargs)
    display.figure_.canvas.draw()
    return display


def test_everybody_is_drawn_once_with_their_group(models, tilted):
    display = draw(models[0], tilted, tilted.target)
    found = boundary_costs(models[0], tilted.data)
    group = tilted.sensitive_features["group"].to_numpy()
    for label, mask in {
        "accepted": ~found.rejected,
        "rejected, near": found.rejected & (group == "near"),
        "rejected, far": found.rejected & (group == "far"),
    }.items():
        np.testing.assert_allclose(display.artists_[label].get_offsets(), tilted.data.to_numpy()[mask])


def test_title_has_penalty_accuracy_and_the_gap_of_the_metric(models, tilted):
    for model, penalty in zip(models, ("0", "∞"), strict=True):
        display = draw(model, tilted, tilted.target)
        found = boundary_costs(model, tilted.data)
        gap = recourse_gap(found.costs, rejected=found.rejected, sensitive_features=tilted.sensitive_features)
        assert display.gap == pytest.approx(gap)
        assert display.accuracy == pytest.approx(model.score(tilted.data, tilted.target))
        assert display.ax_.get_title() == f"λ = {penalty}, accuracy {display.accuracy:.2f}\ngap {gap:.2f}"


def test_scores_are_positive_where_the_model_says_yes(tilted):
    flipped = LogisticRegression().fit(tilted.data, -tilted.target)  # the yes is now the smaller label
    flipped.favorable_label_ = -1
    display = draw(flipped, tilted, -tilted.target)
    grid = pd.DataFrame(np.column_stack([display.xx0.ravel(), display.xx1.ravel()]), columns=tilted.data.columns)
    np.testing.assert_array_equal(display.scores.ravel() > 0, flipped.predict(grid) == -1)
    assert display.accuracy == flipped.score(tilted.data, -tilted.target)


def test_nearest_group_is_brown_and_the_next_grey(models, tilted):
    artists = draw(models[0], tilted).artists_
    assert list(artists) == ["accepted", "rejected, near", "rejected, far"]
    red, brown, grey = (artist.get_facecolor()[0][:3] for artist in artists.values())
    assert red[0] > 0.8 > brown[0]
    assert brown[0] > 2 * brown[2]
    assert grey[0] == grey[1] == grey[2]


def test_groups_keep_their_colours_along_a_row_of_panels(models, tilted):
    displays = plot_boundaries(
        models, tilted.data, tilted.target, sensitive_features=tilted.sensitive_features, grid_resolution=50
    )
    displays[0].figure_.canvas.draw()
    for label, artist in displays[0].artists_.items():
        np.testing.assert_array_equal(artist.get_facecolor(), displays[1].artists_[label].get_facecolor())
    assert len(displays[0].figure_.legends) == 1
    assert displays[0].figure_ is displays[1].figure_


def test_linear_boundary_tilts(models, tilted):
    slopes = [-model.coef_[0, 0] / model.coef_[0, 1] for model in models]
    assert abs(slopes[0]) < 0.2
    assert slopes[1] < -0.5


def test_rbf_margin_closes_around_both_groups():
    ring = make_ring_groups(random_state=0)

    def inner_and_outer(penalty):
        """The score at the middle, at the two rings and outside, averaged over the angle."""
        model = EqualRecourseSVC(gamma=0.1, recourse_penalty=penalty)
        model.fit(ring.data, ring.target, sensitive_features=ring.sensitive_features)
        display = draw(model, ring, ring.target, grid_resolution=80)
        assert "feature-space gap" in display.ax_.get_title()
        radius = np.hypot(display.xx0, display.xx1)
        return [display.scores[abs(radius - r) < 0.15].mean() for r in (0.3, 3.0, 4.4)]

    middle, between, outside = inner_and_outer(0)
    assert middle > 1 > -1 > between > outside  # one mode: farther out is farther off
    middle, between, outside = inner_and_outer(np.inf)
    assert middle > 1 > -1 > between
    assert outside > -1  # a second margin, beyond the far group


def test_wrong_decisions_are_crossed(tilted):
    target = tilted.target.copy()
    target.iloc[:7] *= -1
    model = LogisticRegression().fit(tilted.data, tilted.target)
    display = draw(model, tilted, target)
    assert len(display.artists_["decision differs from the label"].get_offsets()) == 7
    assert "decision differs from the label" not in draw(model, tilted, tilted.target).artists_
    assert draw(model, tilted).ax_.get_title() == f"gap {display.gap:.2f}"


@pytest.mark.parametrize("steps", [[StandardScaler()], [Nystroem(n_components=20, random_state=0)]])
def test_pipelines_and_arrays_are_drawn(tilted, steps):
    model = make_pipeline(*steps, LinearSVC(random_state=0)).fit(tilted.data.to_numpy(), tilted.target)
    display = BoundaryDisplay.from_estimator(
        model, tilted.data.to_numpy(), tilted.target, sensitive_features=tilted.sensitive_features
    )
    assert display.ax_.get_xlabel() == ""


@pytest.mark.parametrize("favorable", [-1, 1])
def test_a_model_that_decides_the_same_for_all_is_drawn(tilted, favorable):
    model = LogisticRegression().fit(tilted.data, tilted.target)
    model.coef_, model.intercept_ = model.coef_ * 1e-6, np.array([5.0 * favorable])
    display = draw(model, tilted, tilted.target)
    assert ("gap undefined" in display.ax_.get_title()) == (favorable == 1)


def test_hostile_names_are_shown_as_text(models, tilted):
    data = tilted.data.set_axis(["$x_1$", "<b>$"], axis=1)
    group = tilted.sensitive_features["group"].replace("near", "$x_1$ <b>")
    model = LogisticRegression().fit(data, tilted.target)
    display = BoundaryDisplay.from_estimator(model, data, sensitive_features=group)
    display.figure_.canvas.draw()
    texts = [display.ax_.xaxis.label, display.ax_.yaxis.label, *display.ax_.get_legend().get_texts()]
    rendered = [t._preprocess_math(t.get_text()) for t in texts]
    assert {("$x_1$", False), ("<b>$", False), ("rejected, $x_1$ <b>", False)} <= set(rendered)


def test_plot_does_not_change_the_data(models, tilted):
    before = tilted.data.copy()
    display = draw(models[0], tilted, tilted.target)
    scores, points = display.scores.copy(), display.points.copy()
    display.plot(legend=False, title="again")
    pd.testing.assert_frame_equal(tilted.data, before)
    np.testing.assert_array_equal(display.scores, scores)
    np.testing.assert_array_equal(display.points, points)


def test_given_axes_are_used(models, tilted):
    figure, axes = plt.subplots(1, 2)
    display = draw(models[0], tilted, ax=axes[1])
    assert (display.ax_, display.figure_) == (axes[1], figure)
    displays = plot_boundaries(models, tilted.data, sensitive_features=tilted.sensitive_features, axes=axes)
    assert [d.ax_ for d in displays] == list(axes)
    assert plt.get_fignums() == [figure.number]


def test_bad_input_is_one_sentence(models, tilted):
    groups = tilted.sensitive_features
    with pytest.raises(ValueError, match="X has 3 features; fit the model on two of them"):
        BoundaryDisplay.from_estimator(models[0], np.zeros((4, 3)), sensitive_features=list("aabb"))
    with pytest.raises(ValueError, match=r"y has shape .* one label per person"):
        draw(models[0], tilted, tilted.target[:5])
    with pytest.raises(ValueError, match="grid_resolution must be a whole number"):
        draw(models[0], tilted, grid_resolution=0.5)
    with pytest.raises(ValueError, match="order must name each of the 2 groups once"):
        draw(models[0], tilted).plot(order=[0, 0])
    with pytest.raises(ValueError, match="models is empty"):
        plot_boundaries([], tilted.data, sensitive_features=groups)
    with pytest.raises(ValueError, match="axes has 1 panels for 2 models"):
        plot_boundaries(models, tilted.data, sensitive_features=groups, axes=plt.subplots()[1])
