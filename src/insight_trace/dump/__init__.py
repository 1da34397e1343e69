"""Dumps: every schema in which dispatches have been written, read as `Dispatch`; two of them written."""
