"""Past one machine: a real cluster of two processes, one of which is killed while it works, changes no number."""

import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import dask
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from equirecourse import ActionSet, audit_partitions, find_recourse
from equirecourse.replication._cells import BOUNDS, table1_cells
from equirecourse.replication._cells import QUICK as QUICK_SCALE
from equirecourse.replication._run import compute
from equirecourse.replication._store import Store

FEATURES = ["income", "debts"]
PARTS = 8
QUICK = {"n_boot": 50, "n_permutations": 50}

# What a cluster says of workers that come and go is not what is tested here; nothing else is silenced.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed.*"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]


@pytest.fixture
def client(cluster):
    """The cluster with both of its workers: where only one is left, joblib runs everything in this process."""
    cluster.wait_for_workers(2, timeout=60)
    return cluster


@pytest.fixture(scope="module")
def cluster():
    with (
        warnings.catch_warnings(),
        dask.config.set(
            {"distributed.worker.daemon": True, "distributed.comm.timeouts.connect": "20s", "distributed.logging": {}}
        ),
    ):
        warnings.simplefilter("ignore")
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60,
                memory_limit=0,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield client


def people_of(part, n=300):
    rng = np.random.default_rng(part)
    people = pd.DataFrame({"income": rng.normal(30, 8, n), "debts": rng.normal(4, 2, n)})
    people["sex"] = rng.choice(["f", "m"], n)
    score = people.income / 8 - people.debts / 2 - 0.6 * (people.sex == "f")
    people["decision"] = np.where(score + rng.normal(size=n) > 1.5, "yes", "no")
    return people


def slow_people_of(part, folder):
    """Leave a sign of who begins to read a part, and take some time over it."""
    leave_a_sign(folder, part)
    return people_of(part)


def leave_a_sign(folder, part):
    (Path(folder) / f"{part}-{os.getpid()}-{time.monotonic_ns()}").touch()
    time.sleep(0.1)


class Sign(NamedTuple):
    """Who began which part, and when."""

    part: int
    process: int
    when: int


def signs_in(folder):
    return [Sign(*map(int, path.name.split("-"))) for path in Path(folder).iterdir()]


@pytest.fixture(scope="module")
def model():
    people = people_of(99, 2000)
    return LogisticRegression().fit(people[FEATURES], people["decision"])


@pytest.fixture(scope="module")
def asked():
    actions = ActionSet.from_frame(people_of(99)[FEATURES])
    return {"sensitive_features": "sex", "target": "decision", "actions": actions, **QUICK}


class Killer(threading.Thread):
    """Kill a worker of the cluster as soon as it has begun a part and others have been done."""

    def __init__(self, client, folder, begun):
        super().__init__(daemon=True)
        self.workers = set(client.run(os.getpid).values())
        self.folder, self.begun, self.killed = Path(folder), begun, None

    def run(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.killed is None:
            # The process that asks may leave signs as well, and it must not be killed.
            signs = [sign for sign in signs_in(self.folder) if sign.process in self.workers]
            if len(signs) >= self.begun:
                self.killed = max(signs, key=lambda sign: sign.when).process
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.005)


class KillerOfTheBusy(threading.Thread):
    """Kill a worker of the cluster as soon as the scheduler has given it something to do."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.processes, self.killed = client, client.run(os.getpid), None

    def run(self):
        end = time.monotonic() + 60
        while time.monotonic() < end and self.killed is None:
            busy = [worker for worker, tasks in self.client.processing().items() if tasks]
            if busy:
                self.killed = self.processes[busy[0]]
                os.kill(self.killed, signal.SIGKILL)
            time.sleep(0.005)


def test_a_killed_worker_changes_no_number(client, model, asked, tmp_path):
    expected = audit_partitions(model, dd.from_map(people_of, range(PARTS)), **asked)
    killer = Killer(client, tmp_path, begun=PARTS // 2)
    killer.start()
    found = audit_partitions(model, dd.from_map(slow_people_of, range(PARTS), folder=str(tmp_path)), **asked)
    killer.join(60)
    signs = signs_in(tmp_path)
    assert killer.killed in {sign.process for sign in signs}
    # Parts were read again: those of the worker that is gone.
    assert len(signs) > PARTS + 1
    assert found.document == expected.document
    alone = audit_partitions(model, [people_of(part) for part in range(PARTS)], **asked)
    assert alone.document["counts"] == expected.document["counts"]
    np.testing.assert_allclose(found.by_group.astype(float), alone.by_group.astype(float), rtol=1e-12)
    assert found.frames["sex"].p_value == alone.frames["sex"].p_value


class SlowModel(LogisticRegression):
    """A model that leaves a sign whenever it is asked, and takes its time."""

    folder = None

    def predict(self, X):
        leave_a_sign(self.folder, len(X))
        return super().predict(X)


def test_a_killed_worker_of_joblibs_backend_changes_no_number(client, model, asked, tmp_path):
    (tmp_path / "people").mkdir()
    (tmp_path / "signs").mkdir()
    for part in range(PARTS):
        people_of(part).to_parquet(tmp_path / "people" / f"{part}.parquet")
    expected = audit_partitions(model, tmp_path / "people", **asked)
    slow = SlowModel().fit(people_of(99, 2000)[FEATURES], people_of(99, 2000)["decision"])
    slow.folder = str(tmp_path / "signs")
    killer = Killer(client, tmp_path / "signs", begun=6)
    killer.start()
    with joblib.parallel_config("dask"):
        found = audit_partitions(slow, tmp_path / "people", n_jobs=-1, **asked)
    killer.join(60)
    assert killer.killed is not None
    assert found.by_group.equals(expected.by_group)
    assert found.verdicts == expected.verdicts


def test_a_folder_of_parquet_over_joblibs_dask_backend(client, model, asked, tmp_path):
    for part in range(3):
        people_of(part).to_parquet(tmp_path / f"{part}.parquet")
    expected = audit_partitions(model, tmp_path, **asked)
    with joblib.parallel_config("dask"):
        found = audit_partitions(model, tmp_path, n_jobs=-1, **asked)
    assert found.document == expected.document


@pytest.mark.parametrize("method", ["auto", "milp", "surrogate"])
def test_recourse_over_joblibs_dask_backend_also_when_a_worker_is_killed(client, method):
    people = people_of(1, 600)
    size = {"n_estimators": 2, "max_depth": 2} if method == "milp" else {"n_estimators": 8, "max_depth": 4}
    forest = RandomForestClassifier(**size, random_state=0).fit(people[FEATURES], people["decision"])
    given = {"actions": ActionSet.from_frame(people[FEATURES]), "norm": "l1", "method": method}
    asked = people[FEATURES][:40] if method == "milp" else people[FEATURES]
    expected = find_recourse(forest, asked, **given)
    before = tasks_done(client)
    killer = KillerOfTheBusy(client) if method == "milp" else None  # whose tasks take long enough
    if killer is not None:
        killer.start()
    with joblib.parallel_config("dask"):
        found = find_recourse(forest, asked, n_jobs=-1, **given)
    assert tasks_done(client) > before
    if killer is not None:
        killer.join(60)
        assert killer.killed is not None
    # Surrogates are least squares, whose last digit depends on where in memory their rows lie.
    np.testing.assert_allclose(found.costs, expected.costs, rtol=1e-12 if method == "surrogate" else 0)
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_array_equal(found.exact, expected.exact)


def test_the_replication_over_joblibs_dask_backend_also_when_a_worker_is_killed(client, tmp_path):
    first = {"dataset": "german", "bound": BOUNDS[0], "run": 0}  # every kernel under both protocols
    cells = [cell for cell in table1_cells(QUICK_SCALE) if first.items() <= cell.columns().items()]
    alone, together = (Store(tmp_path / name, QUICK_SCALE) for name in ("alone", "together"))
    compute(cells, alone, n_jobs=1, verbose=False)
    killer = KillerOfTheBusy(client)
    killer.start()
    with joblib.parallel_config("dask"):
        assert compute(cells, together, n_jobs=-1, verbose=False) == len(cells)
    killer.join(60)
    assert killer.killed is not None
    pd.testing.assert_frame_equal(together.read(cells), alone.read(cells), rtol=1e-9)


def tasks_done(client):
    """A number that grows with every task that the cluster was given."""
    return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
