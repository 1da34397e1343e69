"""The user's own program: its compiler, its runtime and its device are ours, its files stay as they are."""
