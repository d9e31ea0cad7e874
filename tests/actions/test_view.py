"""An action set as people see it."""

import numpy as np

from equirecourse.actions import ActionSet, Feature, Link, Rule

ACTIONS = ActionSet(
    [
        Feature("age", change="no", step=1, low=18, cost=0.08292689),
        Feature("months", change="increase"),
        Feature("housing", kind="labels", labels=("own", "rent", "for free"), allowed=("own", "rent")),
        Feature("skill", kind="ordered", labels=tuple(f"level {k}" for k in range(30)), change="increase", cost=2),
    ],
    links=[Link("months", "age", 1 / 12)],
    rules=[Rule("housing == 'own'", "months >= 12")],
)


def test_the_table_is_aligned_and_long_lists_are_cut():
    assert repr(ACTIONS).splitlines() == [
        "ActionSet: 4 features, 3 can change",
        "",
        "feature  kind     change    values                                                  step  cost",
        "age      number   no        at least 18                                             1     0.0829",
        "months   number   increase  any number                                                    1",
        "housing  labels   any       to 'own', 'rent' (of 3)                                       1",
        "skill    ordered  increase  'level 0', 'level 1', 'level 2', 'level 3' and 26 more        2",
        "",
        "links:",
        "  when months moves by 1, age moves by 0.08333333333",
        "",
        "rules:",
        "  if housing == 'own' then months >= 12",
    ]


def test_many_features_are_cut():
    shown = repr(ActionSet([Feature(f"f{k}") for k in range(75)]))
    assert shown.endswith("... and 15 more")
    assert "f60" not in shown


def test_html_escapes_whatever_came_with_the_data():
    bad = "<img src=x onerror=alert(1)>"
    actions = ActionSet(
        [Feature(bad, kind="labels", labels=(bad, "</td>")), Feature("n"), Feature("m")],
        links=[Link("n", "m", 1)],
        rules=[Rule("n >= 1", f"{bad!r} == {bad!r}")],
    )
    page = actions._repr_html_()
    assert "<img" not in page
    assert page.count("&lt;img") == 4
    assert page.count("</td>") == 18


def test_names_with_line_breaks_stay_on_one_line():
    shown = repr(ActionSet([Feature("a\nb\x00", kind="labels", labels=("x\ny",))]))
    assert len(shown.splitlines()) == 4
    assert "a b?" in shown


def test_the_frame_has_everything():
    frame = ACTIONS.to_frame()
    assert list(frame.columns) == ["feature", "kind", "change", "low", "high", "step", "labels", "allowed", "cost"]
    assert frame["feature"].tolist() == ["age", "months", "housing", "skill"]
    assert frame["low"].tolist()[:2] == [18.0, -np.inf]
    assert np.isnan(frame["low"][2])
    assert frame["labels"][0] is None
    assert frame["labels"][2] == ("own", "rent", "for free")
    assert frame["allowed"][2] == ("own", "rent")
    assert frame["allowed"][3] is None
    assert ActionSet([]).to_frame().shape == (0, 9)
