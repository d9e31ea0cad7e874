"""The figure of a frontier has a point for every setting, at the numbers of its table."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from equirecourse.equalizers._frontier import Frontier
from equirecourse.plotting import FrontierDisplay


@pytest.fixture
def frontier(frontier_table):
    return Frontier(frontier_table, tuple({} for _ in range(len(frontier_table))), None, "input")


def legend_of(display):
    return [text.get_text() for text in display.legend_.get_texts()]


def test_points_are_at_the_tables_values(frontier):
    display = FrontierDisplay.from_frontier(frontier)
    display.figure_.canvas.draw()
    np.testing.assert_allclose(display.points_.get_offsets(), frontier.table[["accuracy", "gap"]])


def test_interval_bars_are_the_intervals(frontier):
    display = FrontierDisplay.from_frontier(frontier)
    bars = next(c for c in display.ax_.collections if c.get_label() == "interval of the gap")
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, frontier.table[["gap_low", "gap_high"]])


@pytest.mark.parametrize(("budget", "picked"), [(0.0, 0), (0.005, 1), (0.01, 2), (0.05, 3)])
def test_the_pick_is_the_frontiers_pick_and_is_labelled(frontier, budget, picked):
    display = FrontierDisplay.from_frontier(frontier, budget)
    assert display.picked == frontier.pick(budget) == picked
    row = frontier.table.iloc[picked]
    assert display.labels_[-1].xy == pytest.approx((row["accuracy"], row["gap"]))
    assert len(display.labels_) == (1 if picked == 0 else 2)
    assert "plain model" in display.labels_[0].get_text()


def test_everything_drawn_is_inside_the_axes(frontier):
    display = FrontierDisplay.from_frontier(frontier)
    (left, right), (bottom, top) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert left < frontier.table["accuracy"].min()
    assert left < 0.80 - 0.01
    assert frontier.table["accuracy"].max() < right
    assert bottom == 0
    assert frontier.table["gap_high"].max() < top


def test_budget_and_convergence_are_in_the_legend(frontier):
    legend = legend_of(FrontierDisplay.from_frontier(frontier, 0.02))
    assert "beyond the budget of 2 points of accuracy" in legend
    assert "rounds did not converge in every fold" in legend


def test_undefined_gaps_are_counted_and_not_drawn(frontier_table):
    frontier_table.loc[2, ["gap", "gap_low", "gap_high", "noise_floor"]] = np.nan
    display = FrontierDisplay(table=frontier_table, picked=1, accuracy_budget=0.01).plot()
    display.figure_.canvas.draw()
    assert len(display.points_.get_offsets()) == 3
    assert "not drawn: 1 setting with an undefined gap" in legend_of(display)


def test_a_frontier_of_one_point_is_drawn(frontier_table):
    FrontierDisplay(table=frontier_table.iloc[:1], picked=0, accuracy_budget=0.0).plot().figure_.canvas.draw()


def test_gaps_of_zero_are_drawn(frontier_table):
    frontier_table[["gap", "gap_low", "gap_high", "noise_floor"]] = 0.0
    FrontierDisplay(table=frontier_table, picked=0, accuracy_budget=0.01).plot().figure_.canvas.draw()


def test_plot_changes_neither_the_frontier_nor_the_display(frontier):
    before = frontier.table.copy()
    display = FrontierDisplay.from_frontier(frontier)
    display.plot()
    display.table["gap"] = 0.0
    pd.testing.assert_frame_equal(frontier.table, before)


def test_given_axes_are_used(frontier):
    figure, axes = plt.subplots(1, 2)
    display = FrontierDisplay.from_frontier(frontier, ax=axes[1])
    assert (display.ax_, display.figure_) == (axes[1], figure)
    assert not axes[0].has_data()


def test_bad_input_is_one_sentence(frontier, frontier_table):
    with pytest.raises(ValueError, match="must be the result of recourse_frontier, got DataFrame"):
        FrontierDisplay.from_frontier(frontier_table)
    with pytest.raises(ValueError, match="accuracy_budget must be between 0 and 1"):
        FrontierDisplay.from_frontier(frontier, 5)
    with pytest.raises(ValueError, match="table has no column 'noise_floor'"):
        FrontierDisplay(table=frontier_table.drop(columns="noise_floor"), picked=0, accuracy_budget=0.01)
    with pytest.raises(ValueError, match="picked must be a row of the table, 0 to 3, got 7"):
        FrontierDisplay(table=frontier_table, picked=7, accuracy_budget=0.01)
    frontier_table["gap"] = np.nan
    with pytest.raises(ValueError, match="None of the 4 settings has a defined gap"):
        FrontierDisplay(table=frontier_table, picked=0, accuracy_budget=0.01).plot()
