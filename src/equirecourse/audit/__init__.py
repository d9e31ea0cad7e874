"""Recourse by group with its uncertainty, as one document: what a report shows and a machine reads."""

from equirecourse.audit._audit import audit
from equirecourse.audit._cheats import cheats_in_words
from equirecourse.audit._document import SCHEMA_VERSION, read_audit, schema
from equirecourse.audit._result import RecourseAudit
from equirecourse.audit._stream import StreamedAudit, audit_partitions

__all__ = [
    "SCHEMA_VERSION",
    "RecourseAudit",
    "StreamedAudit",
    "audit",
    "audit_partitions",
    "cheats_in_words",
    "read_audit",
    "schema",
]
