"""Where tests find what lies outside the project, and how they say that it is absent."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# The machine is shared: a slow example is not a wrong one. Every run draws other examples; the long form draws more.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=100 if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else 16,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def or_half(examples: int) -> int:
    """Examples of a test: half as many where the long form is not asked for. Every run draws others."""
    return examples if os.environ.get("INSIGHT_TRACE_LONG_TESTS") else max(5, examples // 2)


# Tests start the tool a thousand times: its modules are compiled once, beside what pytest itself keeps. Compiling them
# anew takes longer than most of what is tested.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(ROOT / ".pytest_cache" / "compiled"))

# A shell's background job ignores SIGINT, and what it starts does, too. Tests send it, and expect it to be taken.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Named in the environment of the tool it means that kernels compile against its headers; here it is a checkout for
# the tests that ask for one.
for _library in ("PTO_ISA", "ASCENDC"):
    _named = os.environ.pop(f"INSIGHT_TRACE_{_library}", "")
    if _named:
        os.environ[f"INSIGHT_TRACE_TEST_{_library}"] = _named


# What tests of these folders write or copy is alike: examples, builds, scenes around a few lines.
_ALIKE = frozenset({"capture", "check", "commands", "debug", "guard", "ptoas", "replay", "run"})


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder, of the same name for all tests of some folders: what they write alike is compiled once.

    A path is part of what names a compiled kernel. A test that needs a name of its own takes `own_path`.
    """
    own = tmp_path_factory.mktemp(re.sub(r"\W", "_", request.node.name)[:30])
    if request.path.parent.name not in _ALIKE:
        yield own
        return
    place = tmp_path_factory.getbasetemp() / "test"
    place.mkdir()
    yield place
    place.rename(own)


@pytest.fixture
def own_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of a name that no other test has."""
    return tmp_path_factory.mktemp("own")


UPSTREAM = frozenset(
    {
        "shared_data",
        "simpler_checkout",
        "pto_isa_checkout",
        "pypto_checkout",
        "ptoas_checkout",
        "asc_devkit_checkout",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that takes something from outside the project is marked by that: `-m upstream` runs these alone."""
    for item in items:
        if UPSTREAM & set(getattr(item, "fixturenames", ())):
            item.add_marker("upstream")


@pytest.fixture(scope="session")
def recorded_dumps() -> Path:
    """Dumps that simpler wrote of one run of paged attention, CaseSmall1, in six of its schemas."""
    return ROOT / "tests" / "data" / "dumps"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real dumps, logs and measured cycles."""
    shared = Path(os.environ.get("INSIGHT_TRACE_SHARED", ROOT.parent / "shared"))
    data = shared / "data" if (shared / "data").is_dir() else shared
    if not (data / "dumps").is_dir():
        pytest.skip("shared data absent: set INSIGHT_TRACE_SHARED to the folder that holds data/")
    return data


def _checkout(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        named = variable.replace("_TEST", "")
        pytest.skip(f"set {named} to a checkout of {what} to run this test")
    path = Path(value)
    assert path.is_dir(), f"{variable} names {path}, which is not a directory"
    return path


@pytest.fixture(scope="session")
def pypto_checkout() -> Path:
    return _checkout("INSIGHT_TRACE_PYPTO", "pypto")


@pytest.fixture(scope="session")
def simpler_checkout() -> Path:
    return _checkout("INSIGHT_TRACE_SIMPLER", "simpler")


@pytest.fixture(scope="session")
def ptoas_checkout() -> Path:
    return _checkout("INSIGHT_TRACE_PTOAS", "PTOAS")


@pytest.fixture(scope="session")
def asc_devkit_checkout() -> Path:
    return _checkout("INSIGHT_TRACE_TEST_ASCENDC", "asc-devkit")


@pytest.fixture(scope="session")
def pto_isa_checkout() -> Path:
    return _checkout("INSIGHT_TRACE_TEST_PTO_ISA", "pto-isa")
