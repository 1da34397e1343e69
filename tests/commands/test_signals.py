"""Signals end a command at whatever moment they come."""

import importlib
import os
import shutil
import signal
import tempfile
import time
import weakref

import pytest

from insight_trace.commands.signals import Terminated, orderly
from insight_trace.scratch import scratch_folder


class Thing:
    pass


@pytest.mark.parametrize(
    ("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_that_comes_in_a_callback_of_the_interpreter_is_not_lost(sent, raised, capsys):
    come = []

    def callback(_):
        come.append(True)
        os.kill(os.getpid(), sent)
        time.sleep(0.01)  # raised here, where nobody can catch it

    def forgotten():
        thing = Thing()
        watched = weakref.ref(thing, callback)
        with orderly():
            del thing
            time.sleep(5)
        return watched

    with pytest.raises(raised) as caught:
        forgotten()
    assert come
    assert getattr(caught.value, "code", 130) == 128 + sent
    assert capsys.readouterr().err == ""


def test_a_signal_in_the_midst_of_an_import_waits_for_its_end(tmp_path, monkeypatch):
    (tmp_path / "slowly_imported.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.05)\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    seen = []

    def importing():
        with orderly():
            seen.append(importlib.import_module("slowly_imported").whole)
            time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        importing()
    assert seen == [True]


@pytest.mark.parametrize("moment", ["made", "removed"])
def test_a_signal_while_a_temporary_folder_is_made_or_removed_leaves_none(tmp_path, monkeypatch, moment):
    where, name = (tempfile, "mkdtemp") if moment == "made" else (shutil, "rmtree")
    real = getattr(where, name)

    def interrupted(*given, **named):
        made = real(*given, **named) if moment == "made" else None
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.001)  # where it would be raised
        return made or real(*given, **named)

    monkeypatch.setattr(where, name, interrupted)

    def working():
        with orderly():
            with scratch_folder("test", tmp_path) as place:
                (place / "file").write_text("x")
            time.sleep(5)

    with pytest.raises(Terminated):
        working()
    assert not list(tmp_path.iterdir())
