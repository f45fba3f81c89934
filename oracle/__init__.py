"""The oracle: loads a task, owns its buffers, knows the right answer. Start at main.py."""
