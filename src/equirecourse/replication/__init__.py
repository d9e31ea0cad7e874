"""The paper in one command, under its own protocol and under one that cannot fool itself."""

from equirecourse.replication._replicate import PARTS, Replication, replicate

__all__ = ["PARTS", "Replication", "replicate"]
