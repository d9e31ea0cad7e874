"""The numbers printed in the user guide are the numbers its code prints."""

import contextlib
import io
import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "user_guide" / "metrics.md"


def lines(text):
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def test_the_guide_prints_what_it_says():
    names: dict[str, object] = {}
    printed, compared = "", 0
    for kind, body in re.findall(r"```(python|text)\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(body, names)
            printed = out.getvalue()
        elif printed:
            assert lines(printed) == lines(body)
            printed, compared = "", compared + 1
    assert compared == 5
