"""Compare what a page says is printed with what is printed."""

import re

import pytest

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?(?![\w])")


def assert_prints(printed, expected):
    """The same words in the same lines, and the same numbers up to what another machine's arithmetic may change."""
    printed, expected = ([line.split() for line in text.strip("\n").splitlines()] for text in (printed, expected))
    assert len(printed) == len(expected)
    for line, expected_line in zip(printed, expected, strict=True):
        assert len(line) == len(expected_line), (line, expected_line)
        for word, expected_word in zip(line, expected_line, strict=True):
            assert NUMBER.sub("#", word) == NUMBER.sub("#", expected_word)
            found, wanted = (
                [float(n.replace(",", "")) for n in NUMBER.findall(text)] for text in (word, expected_word)
            )
            assert found == pytest.approx(wanted, rel=0.1, abs=0.01), (line, expected_line)
