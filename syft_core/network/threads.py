"""Threads with a stack of a chosen size."""

from __future__ import annotations

import threading

_starting = threading.Lock()
"""Held while a thread is started, because the stack size is a process-wide setting."""


def start_thread(thread: threading.Thread, stack: int) -> None:
    """Start a thread with a stack of this size; 0 is the default size."""
    with _starting:
        before = threading.stack_size(stack) if stack else None
        try:
            thread.start()
        finally:
            if before is not None:
                threading.stack_size(before)
