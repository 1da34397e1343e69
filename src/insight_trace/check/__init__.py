"""What is wrong in a kernel: findings, how they read, and which of them a user allows."""
