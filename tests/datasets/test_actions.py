"""What people can change in each data set."""

import numpy as np
import pytest

from equirecourse.actions import ActionSet
from equirecourse.datasets import (
    fetch_givemecredit,
    fetch_propublica,
    load_credit,
    load_german,
    make_ring_groups,
    make_tilted_groups,
)

PAST_AND_PERSON = {
    (load_german, False): {"age", "foreign_worker", "people_liable_for", "credit_history", "purpose"},
    (load_german, True): {"age", "foreign_worker", "people_liable_for", "credit_history", "purpose", "sex-age"},
    (load_credit, False): {"age", "limit_balance"}
    | {
        f"{what}_{month}"
        for what in ("repayment_status", "bill", "paid")
        for month in ("aug", "jul", "jun", "may", "apr")
    },
    (load_credit, True): {"Age", "TotalOverdueCounts", "TotalMonthsOverdue", "HistoryOfOverduePayments"},
    (fetch_givemecredit, False): {
        *("age", "dependents", "times_30_to_59_days_late", "times_60_to_89_days_late", "times_90_days_late")
    },
    (fetch_givemecredit, True): {
        *("NumberOfDependents", "NumberOfTime30-59DaysPastDueNotWorse", "NumberOfTime60-89DaysPastDueNotWorse"),
        "NumberOfTimes90DaysLate",
    },
    (fetch_propublica, False): {
        *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "felony")
    },
    (fetch_propublica, True): {
        *("age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "race", "sex-race"),
        *("age_cat", "c_charge_degree", "c_charge_desc"),
    },
}
CASES = [pytest.param(load, paper, id=f"{load.__name__}-{paper}") for load, paper in PAST_AND_PERSON]


def fetched(request, load, **arguments):
    """A data set; without the shared folder, those that are not embedded are skipped."""
    if load in (fetch_givemecredit, fetch_propublica):
        folder = request.getfixturevalue("shared_data")
        name = (
            "givemecredit/cs-training.csv.gz"
            if load is fetch_givemecredit
            else "propublica/compas_two_years_noid.csv.gz"
        )
        if not (folder / name).is_file():
            pytest.skip(f"EQUIRECOURSE_DATA has no {name}")
    return load(**arguments)


@pytest.mark.parametrize(("load", "paper"), CASES)
def test_neither_the_person_nor_the_past_can_change(load, paper, request):
    actions = fetched(request, load, paper=paper).actions
    assert isinstance(actions, ActionSet)
    assert {feature.name for feature in actions if not feature.mutable} == PAST_AND_PERSON[load, paper]


@pytest.mark.parametrize(("load", "paper"), CASES)
def test_actions_speak_of_every_column_in_its_order_and_arrays_fit_them(load, paper, request):
    frame, array = (fetched(request, load, paper=paper, as_frame=as_frame) for as_frame in (True, False))
    assert frame.actions.columns == frame.feature_names
    assert frame.actions == array.actions
    encoded = frame.actions.encode(frame.data)
    np.testing.assert_array_equal(encoded, frame.actions.encode(array.data))
    assert not np.isnan(encoded).any()
    for j, feature in enumerate(frame.actions):
        if not feature.is_number:
            assert encoded[:, j].min() >= 0
        assert feature.percentiles is not None


@pytest.mark.parametrize(("load", "paper"), CASES)
def test_actions_survive_a_file(load, paper, request, tmp_path):
    actions = fetched(request, load, paper=paper).actions
    actions.write(tmp_path / "actions.toml")
    assert ActionSet.read(tmp_path / "actions.toml") == actions


def test_ways_of_german():
    actions = load_german().actions
    ways = {way: {feature.name for feature in actions if feature.change == way} for way in ("increase", "decrease")}
    assert ways == {"increase": {"employment", "residence_since", "skill_level"}, "decrease": {"number_of_credits"}}
    ordered = {feature.name for feature in actions if feature.kind == "ordered"}
    assert ordered == {"employment", "skill_level", "status", "savings"}
    for name, closed in {
        "status": "no checking account",
        "savings": "unknown / none",
        "property": "unknown / none",
        "housing": "for free",
    }.items():
        assert set(actions[name].labels) - set(actions[name].allowed) == {closed}


def test_the_papers_german_closes_the_same_labels():
    natural, paper = load_german(), load_german(paper=True)
    one_way = {"employment": "A71", "skill_level": "A171"}  # no order among columns, so only the lowest label is closed
    for feature in paper.actions:
        if feature.kind == "one_hot":
            closed = set(feature.labels) - set(feature.allowed or feature.labels)
            if feature.name in one_way:
                assert closed == {one_way[feature.name]}
            else:
                twin = natural.actions[feature.name]
                assert len(closed) == len(set(twin.labels) - set(twin.allowed or twin.labels))
                assert feature.change == twin.change


def test_ways_of_credit():
    actions = load_credit().actions
    mutable = {feature.name: feature.change for feature in actions if feature.mutable}
    assert mutable == {
        "education": "increase",
        "paid_sep": "increase",
        "bill_sep": "decrease",
        "repayment_status_sep": "decrease",
    }
    assert actions["bill_sep"].low == 0
    paper = load_credit(paper=True).actions
    assert paper["EducationLevel"].change == "increase"
    assert paper["MostRecentBillAmount"].step == 10


def test_outliers_do_not_make_changes_free(request):
    people = fetched(request, fetch_givemecredit)
    actions = people.actions
    assert (actions["revolving_utilization"].low, actions["revolving_utilization"].high) == (0, 1)
    # A utilisation from 1 to 0 is no small matter, although the largest one is 50,708.
    assert 2 < actions["revolving_utilization"].cost < 4
    assert 2 < actions["debt_ratio"].cost < 5
    assert set(actions.starts_outside(people.data)["feature"]) == {"revolving_utilization"}
    everybody = fetch_givemecredit(handle_missing="keep")
    assert everybody.actions["debt_ratio"].cost == pytest.approx(actions["debt_ratio"].cost, rel=0.05)
    assert np.isnan(everybody.actions.encode(everybody.data)).any()


@pytest.mark.parametrize("make", [make_tilted_groups, make_ring_groups])
def test_moves_in_the_plane_cost_their_length(make):
    actions = make(random_state=0).actions
    assert all(np.isinf(feature.low) and np.isinf(feature.high) and feature.cost == 1 for feature in actions)


@pytest.mark.parametrize("load", [load_german, load_credit])
def test_features_and_target_alone_come_without_actions(load):
    assert len(load(return_X_y=True)) == 2
