"""What a device measured of a run, and what follows from it."""
