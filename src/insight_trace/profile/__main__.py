"""`python -m insight_trace.profile`: the command under the name that users of the earlier script expect."""

import importlib
import sys

# The command line stands above this package and is only reached for when this is the program.
sys.exit(importlib.import_module("insight_trace.commands").run_line(["profile", *sys.argv[1:]]))
