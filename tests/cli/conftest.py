"""What the command line does to its process must not outlast a test."""

import signal

import pytest


@pytest.fixture(autouse=True)
def own_interrupts():
    """Give pytest its interrupts back."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
