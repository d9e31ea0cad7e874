"""Data to try things on: the paper's four data sets, and its two toy sets.

``load_*`` functions read data embedded in the package and never use the network. ``fetch_*`` functions read
data that may not be redistributed: from the folder named by the environment variable ``EQUIRECOURSE_DATA``,
from a cache, or from its publisher. ``make_*`` functions draw toy data.

All return a :class:`sklearn.utils.Bunch` with the groups in ``sensitive_features`` and, in ``actions``, what
people can change. The target is +1 for the outcome a person hopes for and −1 for the other one; ``paper=True``
gives the paper's coding instead, in which one data set (ProPublica) has the opposite sign:
``favorable_label`` says which.
"""

from equirecourse.datasets._credit import load_credit
from equirecourse.datasets._download import clear_data_home, get_data_home
from equirecourse.datasets._german import load_german
from equirecourse.datasets._givemecredit import fetch_givemecredit
from equirecourse.datasets._propublica import fetch_propublica
from equirecourse.datasets._toys import make_ring_groups, make_tilted_groups

__all__ = [
    "clear_data_home",
    "fetch_givemecredit",
    "fetch_propublica",
    "get_data_home",
    "load_credit",
    "load_german",
    "make_ring_groups",
    "make_tilted_groups",
]
