"""What a process and all of its children use, for systems that have many."""

import os
from pathlib import Path


def _find_tree():
    """Return the CPU seconds of this process and of those that it has started, by number."""
    parents, used = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(name)], used[int(name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    own = {os.getpid()}
    while found := {child for child, parent in parents.items() if parent in own} - own:
        own |= found
    return {process: used[process] / os.sysconf("SC_CLK_TCK") for process in own}


def count_cpu():
    """Return the CPU seconds of all."""
    return sum(_find_tree().values())


def count_memory():
    """Return the megabytes of all; what several share is counted once."""
    total = 0
    for process in _find_tree():
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024
