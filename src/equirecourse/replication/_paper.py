"""What the paper prints: its settings and its two tables."""

from __future__ import annotations

__all__ = [
    "BLACK_BOX_SAMPLE",
    "CLASSIFIERS",
    "DATASETS",
    "DEGREES",
    "KERNELS",
    "PENALTIES",
    "ROUNDS",
    "RUNS",
    "SVM_SAMPLE",
    "TABLE_1",
    "TABLE_2",
]

DATASETS = ("german", "credit", "propublica", "givemecredit")
KERNELS = ("linear", "poly")
CLASSIFIERS = ("random forest", "logistic", "AdaBoost")

PENALTIES = (0.2, 0.5, 1.0, 2.0, 10.0, 50.0, 100.0)  # λ
DEGREES = (2, 3, 5)
ROUNDS = 10
RUNS = 10
SVM_SAMPLE = {"german": 1000, "credit": 5000, "propublica": 1000, "givemecredit": 1000}
BLACK_BOX_SAMPLE = 1000

# Mean reduction of the recourse difference in per cent, train and test.
TABLE_1 = {
    ("german", "linear"): (80, 0),
    ("german", "poly"): (91, 23),
    ("credit", "linear"): (52, 29),
    ("credit", "poly"): (51, 50),
    ("propublica", "linear"): (84, 16),
    ("propublica", "poly"): (99, 23),
    ("givemecredit", "linear"): (90, 9),
    ("givemecredit", "poly"): (100, 55),
}
TABLE_2 = {
    ("german", "random forest"): (64, 42),
    ("german", "logistic"): (8, 53),
    ("german", "AdaBoost"): (37, 60),
    ("credit", "random forest"): (41, 99),
    ("credit", "logistic"): (90, 100),
    ("credit", "AdaBoost"): (83, 95),
    ("propublica", "random forest"): (59, 43),
    ("propublica", "logistic"): (29, 52),
    ("propublica", "AdaBoost"): (49, 56),
    ("givemecredit", "random forest"): (83, 70),
    ("givemecredit", "logistic"): (20, 100),
    ("givemecredit", "AdaBoost"): (66, 14),
}
