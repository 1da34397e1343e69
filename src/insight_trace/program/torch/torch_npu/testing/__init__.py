"""Test cases."""
