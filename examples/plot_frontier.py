"""
What does equal recourse cost?
==============================

Equality comes in degrees. A frontier fits the model for a path of penalties, judges every person with a model that has
not seen them, and puts the gap that is left beside the accuracy that it takes.
"""

# %%
# Graduates and others, in the credit card data
# ---------------------------------------------

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import EqualRecourseLinear, recourse_frontier
from equirecourse.datasets import load_credit
from equirecourse.plotting import FrontierDisplay

credit = load_credit(paper=True)
people = credit.frame.sample(12_000, random_state=0).index
model = make_pipeline(
    StandardScaler(), EqualRecourseLinear(LogisticRegression(class_weight="balanced"), objective="paper")
)

frontier = recourse_frontier(
    model,
    credit.data.loc[people],
    credit.target.loc[people],
    sensitive_features=credit.sensitive_features.loc[people, "graduate"],
    cv=StratifiedKFold(5, shuffle=True, random_state=0),
    random_state=0,
)
print(frontier.summary(accuracy_budget=0.01))
frontier.table[["recourse_penalty", "gap", "gap_low", "gap_high", "noise_floor", "accuracy", "acceptance"]].round(3)

# %%
# The picture
# -----------
# The pick is the smallest gap among the settings that lose at most a point of accuracy. A gap inside the green band
# is what chance alone would make: a smaller one there is no better than another.

display = FrontierDisplay.from_frontier(frontier, accuracy_budget=0.01)

# %%
# The picked setting, ready to be fitted on everybody:

print(frontier.best_estimator(accuracy_budget=0.01)[-1])
