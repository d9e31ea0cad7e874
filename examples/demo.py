"""Train on the embedded credit data, with sex as the group, and see held-out people before and after.

Run with ``make demo``.
"""

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equirecourse import EqualRecourseLinear, RecourseFrame
from equirecourse.datasets import load_credit
from equirecourse.exceptions import ConvergenceWarning
from equirecourse.recourse import boundary_costs


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    credit = load_credit(paper=True)
    sex = credit.sensitive_features["sex"]
    split = train_test_split(credit.data, credit.target, sex, test_size=0.3, random_state=0, stratify=credit.target)
    X_train, X_test, y_train, y_test, sex_train, sex_test = split

    def model(**equalizer):
        learner = LogisticRegression(class_weight="balanced", max_iter=1000)
        return make_pipeline(StandardScaler(), EqualRecourseLinear(learner, **equalizer))

    shuffled = np.random.default_rng(0).permutation(sex_train)
    models = {
        "before": (model(recourse_penalty=0.0), sex_train),
        "placebo": (model(), shuffled),
        "after": (model(), sex_train),
    }
    print("Default of credit card clients, Taiwan 2005: will this client pay next month?")
    print(f"Logistic regression on {len(y_train):,} people; every number below is about {len(y_test):,} others.")
    print("Cost of recourse: distance to a yes, in standard deviations of the features.\n")

    rows = {}
    verdicts = {}
    for name, (candidate, groups) in models.items():
        candidate.fit(X_train, y_train, equalrecourselinear__sensitive_features=groups)
        found = boundary_costs(candidate, X_test)
        frame = RecourseFrame(costs=found.costs, rejected=found.rejected, sensitive_features=sex_test, random_state=0)
        by_sex = frame.by_group
        rows[name] = {
            "gap (women − men)": f"{by_sex['mean']['female'] - by_sex['mean']['male']:+.3f}",
            "95 % interval of |gap|": f"{frame.interval.low:.3f} to {frame.interval.high:.3f}",
            "noise floor": f"{frame.noise_floor:.3f}",
            "gap ÷ mean cost": f"{frame.relative_gap:.3f}",
            "rejected women": f"{by_sex['rejected']['female']:,}",
            "rejected men": f"{by_sex['rejected']['male']:,}",
            "accuracy": f"{(candidate.predict(X_test) == y_test).mean():.3f}",
            "AUC": f"{roc_auc_score(y_test, candidate.decision_function(X_test)):.3f}",
            "acceptance": f"{1 - found.rejected.mean():.3f}",
        }
        verdicts[name] = frame.verdict

    width = max(map(len, next(iter(rows.values()))))
    print(" " * width + "".join(f"{name:>18}" for name in rows))
    for line in next(iter(rows.values())):
        print(f"{line:<{width}}" + "".join(f"{values[line]:>18}" for values in rows.values()))
    print("\nThe placebo is the same method for groups that were shuffled: it must not close the gap.")
    print(f"\nBefore: {verdicts['before']}")
    print(f"After:  {verdicts['after']}")


if __name__ == "__main__":
    main()
