# SPDX-License-Identifier: Apache-2.0
"""The oracle: loads a task, owns its buffers, knows the right answer. Start at main.py."""
