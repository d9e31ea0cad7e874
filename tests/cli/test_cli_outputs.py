"""What a command writes when one of its outputs fails."""

import pytest

from equirecourse.cli._audit import finish


class Undrawable:
    """An audit whose report cannot be drawn."""

    def to_html(self, path):
        raise OSError("no template")

    def to_json(self, path):
        path.write_text("{}")


def test_a_report_that_cannot_be_drawn_leaves_the_numbers(tmp_path):
    with pytest.raises(OSError, match="no template"):
        finish(Undrawable(), tmp_path / "audit.html", tmp_path / "audit.json")
    assert [path.name for path in tmp_path.iterdir()] == ["audit.json"]
