"""Signals end a command at whatever moment they come."""

import os
import signal
import time
import weakref

import pytest

from insight_trace.commands.ending import Terminated, orderly


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
