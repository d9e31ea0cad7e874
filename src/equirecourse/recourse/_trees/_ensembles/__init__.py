"""Fitted tree models of several libraries in one plain form."""

from equirecourse.recourse._trees._ensembles._ensemble import Ensemble
from equirecourse.recourse._trees._ensembles._read import can_read, read_ensemble, tree_view

__all__ = ["Ensemble", "can_read", "read_ensemble", "tree_view"]
