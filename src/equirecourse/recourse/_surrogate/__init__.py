"""Any model: local linear surrogates for everybody at once, the distances of the paper's Algorithm 2."""

from equirecourse.recourse._surrogate._surrogates import SurrogateRecourse, Surrogates

__all__ = ["SurrogateRecourse", "Surrogates"]
