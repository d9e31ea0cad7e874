"""
What can this person do?
========================

A bank turned somebody down. Which changes would have led to a yes, which of them is the cheapest, and do the changes
that are asked of women and of men cost the same? The model sees one-hot columns and standardised numbers; people see
the 20 attributes of their own application.
"""

# %%
# A model, and what a person can change
# -------------------------------------

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from equirecourse import RecourseFrame, find_recourse, flipsets
from equirecourse.datasets import load_german

german = load_german()
model = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_include="category")), remainder=StandardScaler()
    ),
    LogisticRegression(max_iter=1000),
).fit(german.data, german.target)
print(german.actions)

# %%
# One person
# ----------
# Three ways to a yes that differ in what they change. Each has been through the model after rounding.

rejected = model.predict(german.data) == -1
person = german.data[rejected].iloc[4]
ways = flipsets(model, person, actions=german.actions, k=3)
print(ways)

# %%
# Everybody
# ---------
# The cheapest change of each of the rejected, proven to be the cheapest.

found = find_recourse(model, german.data, actions=german.actions, norm="l1")
print(found)

# %%
# Which features do these changes use? The default prices are one a standard deviation, or one a step of an ordered
# label; somebody who knows what it takes to raise savings should say so in the action set.

before, after = german.data[rejected], found.counterfactuals[rejected]
sex = german.sensitive_features["sex"][rejected]
changed = pd.DataFrame({name: before[name].astype(object) != after[name].astype(object) for name in before})
share = changed.groupby(sex.to_numpy()).mean().T
share = share[share.max(axis=1) > 0.02].sort_values(share.columns[0])

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
share.rename(index=lambda name: name.replace("_", " ")).plot.barh(ax=ax, width=0.75, color=["#0072B2", "#E69F00"])
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set(xlabel="share of the rejected whose cheapest change uses the feature", ylabel="")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")

# %%
# And do they cost the same? With some 240 rejected people one cannot tell these means apart.

frame = RecourseFrame(
    costs=found.costs, rejected=found.rejected, sensitive_features=german.sensitive_features["sex"], random_state=0
)
print(frame.verdict)
frame.by_group[["people", "rejected", "without_recourse", "mean", "mean_low", "mean_high"]].round(3)
