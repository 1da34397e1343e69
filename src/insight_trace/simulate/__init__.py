"""Simulators: each runs one dispatch and shows what its cores executed."""
