"""One cluster for all tests of this folder, and not longer: a scheduler and workers that idle are never quite idle."""

import pytest


@pytest.fixture(scope="package")
def running():
    """A scheduler and two workers, processes of their own, on loopback."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # a dead worker says enough
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as started,
    ):
        yield started.scheduler_address
