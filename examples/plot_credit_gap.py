"""
Closing the gap between women and men in credit scoring
=======================================================

30,000 people hold a credit card; the model predicts who will pay next month. It never sees their sex. Are the women and
the men whom it rejects equally far from a yes? Everything is measured on people the models have not seen.
"""

# %%
# Before: a plain logistic regression
# -----------------------------------

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import EqualRecourseLinear, RecourseFrame
from equirecourse.datasets import load_credit
from equirecourse.plotting import RecourseDisplay
from equirecourse.recourse import boundary_costs

credit = load_credit(paper=True)
X, X_new, y, y_new, sex, sex_new = train_test_split(
    credit.data,
    credit.target,
    credit.sensitive_features["sex"],
    test_size=0.4,
    stratify=credit.target,
    random_state=0,
)


def judge(model):
    """Recourse by sex, of new people."""
    found = boundary_costs(model, X_new)
    frame = RecourseFrame(costs=found.costs, rejected=found.rejected, sensitive_features=sex_new, random_state=0)
    print(f"accuracy {model.score(X_new, y_new):.3f}, acceptance {1 - found.rejected.mean():.3f}")
    print(frame.verdict, end="\n\n")
    return frame


learner = LogisticRegression(class_weight="balanced", max_iter=1000)
plain = make_pipeline(StandardScaler(), learner).fit(X, y)
before = judge(plain)
before.by_group[["people", "rejected", "acceptance", "mean", "mean_low", "mean_high"]].round(3)

# %%
# After: the same learner, with equal recourse
# --------------------------------------------
# The groups are needed to fit, and never again: the model that comes out is an ordinary line in the same twelve
# features.

fair = make_pipeline(StandardScaler(), EqualRecourseLinear(learner, objective="paper"))
fair.fit(X, y, equalrecourselinear__sensitive_features=sex)
after = judge(fair)
after.by_group[["people", "rejected", "acceptance", "mean", "mean_low", "mean_high"]].round(3)

# %%
# The whole distribution, and not only its mean
# ---------------------------------------------
# Each curve says which share of the rejected is within a given distance. Before, the men's lies to the right of the
# women's: at every distance fewer of them are within reach.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), sharey=True, layout="constrained")
for ax, model, frame, name in ((axes[0], plain, before, "plain"), (axes[1], fair, after, "equal recourse")):
    RecourseDisplay.from_estimator(model, X_new, sensitive_features=sex_new, ax=ax, max_cost=5)
    ax.set_title(f"{name}: gap {frame.gap:.2f}, accuracy {model.score(X_new, y_new):.3f}")
axes[1].set_ylabel("")

# %%
# The same as boxes, in the paper's style.

figure, axes = plt.subplots(2, 1, figsize=(7.5, 5), sharex=True, layout="constrained")
for ax, model, name in ((axes[0], plain, "plain"), (axes[1], fair, "equal recourse")):
    display = RecourseDisplay.from_estimator(model, X_new, sensitive_features=sex_new, ax=ax, kind="box")
    ax.set_title(name)
axes[0].set_xlabel("")
axes[1].get_legend().remove()

# %%
# How much of this is luck? This is one split, and a kind one. Five were tried while this example was written: with 60 %
# of the people for training and seeds 0 (this one), 1 and 2 no gap could be detected afterwards; with seed 3, and with
# half of the people for training, about a third of the gap was left, and detectable. Do not judge by one split:
# :func:`~equirecourse.recourse_frontier` takes every person once, out of fold.
