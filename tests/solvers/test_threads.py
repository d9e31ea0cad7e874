"""BLAS keeps to one thread while anybody asks for it, and gets back what it had."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from threadpoolctl import threadpool_info, threadpool_limits

from equirecourse.solvers._threads import one_blas_thread


def blas_threads():
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")


def test_the_outermost_lifts_the_limit():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_blas_thread():
            assert blas_threads() == 1
            with one_blas_thread():
                assert blas_threads() == 1
            assert blas_threads() == 1
        assert blas_threads() == before


def test_threads_that_overlap_leave_no_limit_behind():
    meeting = Barrier(2, timeout=10)

    def first():
        with one_blas_thread():
            meeting.wait()  # the other one enters
            meeting.wait()
        meeting.wait()  # left before the other one

    def second():
        meeting.wait()
        with one_blas_thread():
            meeting.wait()
            meeting.wait()

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(first), pool.submit(second)]
            for one in running:
                one.result()
        assert blas_threads() == before
