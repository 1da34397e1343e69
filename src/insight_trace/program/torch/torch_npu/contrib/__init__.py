"""Additions."""
