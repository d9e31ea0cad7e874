"""Boosted trees that number the categories of a pandas frame by themselves are read exactly, too."""

import itertools

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from xgboost import XGBClassifier

from equirecourse import ActionSet, find_recourse
from equirecourse.recourse import open_model
from equirecourse.recourse._trees._ensembles import read_ensemble, tree_view

TOWNS, JOBS = ["Genf", "Ede", "Dole", "Cork", "Bonn", "Ada"], ["smith", "nurse", "clerk"]


def make_people(n=400, *, gaps=False, numbers=False, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.integers(10, 60, n).astype(float),
            "town": pd.Categorical(rng.choice(TOWNS, n), categories=TOWNS),
            "debts": rng.integers(0, 5, n),
            "job": pd.Categorical(rng.choice(JOBS, n), categories=JOBS),
        }
    )
    score = table.income / 10 - table.debts + 2.0 * table.town.isin(["Ede", "Ada"]) + 1.5 * (table.job == "nurse")
    y = (score + rng.normal(scale=0.5, size=n) > 3.0).astype(int)
    if numbers:
        table["town"] = pd.Categorical(10 * table.town.cat.codes.astype(int), categories=[0, 10, 20, 30, 40, 50])
    if gaps:
        table.loc[::7, "town"] = np.nan
        table.loc[::11, "income"] = np.nan
    return table, y


def boosters():
    yield (
        "lightgbm",
        LGBMClassifier(n_estimators=12, min_child_samples=5, min_data_per_group=5, cat_smooth=1, verbose=-1),
    )
    yield "xgboost", XGBClassifier(n_estimators=12, max_depth=4, enable_categorical=True)
    yield "xgboost, one category a node", XGBClassifier(n_estimators=12, enable_categorical=True, max_cat_to_onehot=9)


BOOSTERS = dict(boosters())


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("numbers", [False, True], ids=["text", "numbers"])
@pytest.mark.parametrize("name", BOOSTERS)
def test_the_trees_that_are_read_decide_as_the_model(name, numbers, gaps):
    table, y = make_people(gaps=gaps, numbers=numbers)
    model = BOOSTERS[name].fit(table, y)
    others = table.assign(job=table.job.cat.set_categories(sorted(JOBS)))  # numbered otherwise, of the same name
    view = open_model(model, people=table)
    for people in (table, others):
        seen = tree_view(view, people)
        ensemble = read_ensemble(seen, people)
        assert any(chosen is not None for chosen in ensemble.categories)
        leaves = ensemble.leaves(seen.inputs(people))
        sums = ensemble.votes[leaves, 1].sum(axis=1) + ensemble.base[1]
        chance = model.predict_proba(people)[:, 1]
        np.testing.assert_allclose(sums, np.log(chance / (1.0 - chance)), atol=1e-4)


@pytest.mark.parametrize("name", BOOSTERS)
def test_the_cheapest_action_is_that_of_trying_everything(name):
    table, y = make_people()
    table = table.assign(income=table.income.round(-1))
    model = BOOSTERS[name].fit(table, y)
    actions = ActionSet.from_frame(table, immutable=["debts"]).replace("income", step=10.0, low=10.0, high=60.0)
    people = table[model.predict(table) == 0].head(25)
    found = find_recourse(model, people, actions=actions, norm="l1")
    assert (found.method, found.exact.all()) == ("trees", True)
    price = {feature.name: feature for feature in actions}
    for i, (_, person) in enumerate(people.iterrows()):
        everything = pd.DataFrame(
            [[*move, person.debts] for move in itertools.product(np.arange(10.0, 61.0, 10.0), TOWNS, JOBS)],
            columns=["income", "town", "job", "debts"],
        )[["income", "town", "debts", "job"]]
        asked = everything.astype(table.dtypes.to_dict())
        cost = (
            np.abs(everything.income - person.income) * price["income"].cost
            + (everything.town != person.town) * price["town"].cost
            + (everything.job != person.job) * price["job"].cost
        )
        accepted = model.predict(asked) == 1
        allowed = accepted & everything.town.isin(_reachable(price["town"], person.town))
        allowed &= everything.job.isin(_reachable(price["job"], person.job))
        assert found.costs[i] == pytest.approx(cost[allowed].min(), rel=1e-9)


def _reachable(feature, now):
    return {now, *(label for label, yes in zip(feature.labels, feature.reachable, strict=True) if yes)}


def test_a_pipeline_that_makes_categories_is_searched():
    table, y = make_people(150)
    model = make_pipeline(FunctionTransformer(), BOOSTERS["lightgbm"]).fit(table, y)
    found = find_recourse(model, table.head(20), actions=ActionSet.from_frame(table))
    assert found.method == "search"
