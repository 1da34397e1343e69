"""Scenes: their cases and kernels, read without running them, or run when they have to be."""
