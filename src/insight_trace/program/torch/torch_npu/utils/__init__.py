"""Helpers of extensions and tests."""
