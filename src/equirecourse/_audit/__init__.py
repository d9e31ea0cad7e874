"""Recourse by group with its uncertainty, as one document: what a report shows and a machine reads."""

from equirecourse._audit._audit import audit
from equirecourse._audit._cheats import cheats_in_words
from equirecourse._audit._document import SCHEMA_VERSION, audit_schema, read_audit
from equirecourse._audit._result import RecourseAudit
from equirecourse._audit._stream import StreamedAudit, audit_partitions

__all__ = [
    "SCHEMA_VERSION",
    "RecourseAudit",
    "StreamedAudit",
    "audit",
    "audit_partitions",
    "audit_schema",
    "cheats_in_words",
    "read_audit",
]
