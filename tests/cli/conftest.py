"""What the command line does to its process must not outlast a test."""

import signal

import pytest


@pytest.fixture(autouse=True)
def own_interrupts():
    """Give pytest its interrupts back."""
    handler, wakeup = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGINT, handler)
