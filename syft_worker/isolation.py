"""Isolation: drop the rights of the process that executes operations, before it serves clients.

Linux only, and each part only where the kernel has it; ``isolate`` returns what was applied. Nothing here needs
privileges, and nothing can be undone by the process.

- limits of the system: memory for data, open files, no core dumps;
- no new privileges: programs with set-user-id would not get any;
- Landlock (Linux 5.13): reads only what Python needs, and writes only the store and the ledger; from 6.12 on, sends
  signals to no other process;
- seccomp: starts no program or process, opens no socket (unless the worker has peers), traces and signals no other
  process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from syft_core.exceptions import ConfigurationError

_SPARE_FILES = 256
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38


@dataclass(frozen=True)
class Isolation:
    """The rights that a process keeps; everything else is taken away."""

    memory: int
    files: int
    """Maximum number of connections."""
    reads: Sequence[Path] = ()
    writes: Sequence[Path] = ()
    connects: bool = False
    """Whether it connects to other machines."""


def isolate(needs: Isolation) -> list[str]:
    """Apply the restrictions that this system supports to all threads that this thread starts; return them."""
    steps: list[tuple[str, Callable[[Isolation], bool]]] = [
        ("limits", _limit_resources),
        ("no-new-privileges", _forbid_privileges),
        ("landlock", _restrict_files),
        ("seccomp", _restrict_calls),
    ]
    return [name for name, apply in steps if apply(needs)]


# --- limits


def _limit_resources(needs: Isolation) -> bool:
    if sys.platform == "win32":
        return False
    import resource  # noqa: PLC0415  # only POSIX systems have it

    used = _used_memory()
    if used > needs.memory:
        raise ConfigurationError(
            f"cannot serve within {needs.memory:,} bytes of memory: the worker with its data needs {used:,} already; "
            f"raise `limits.memory` (and the limit of its container, if it has one), or load less data"
        )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = needs.files + _SPARE_FILES
    files = files if most == resource.RLIM_INFINITY else min(files, most)
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, files),
        # Of the data only: Python, frameworks and threads reserve much more address space than they use.
        (resource.RLIMIT_DATA, needs.memory),
    ):
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    return True


def _used_memory() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _forbid_privileges(_needs: Isolation) -> bool:
    return sys.platform == "linux" and bool(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)


def end_with_parent() -> None:
    """Let the system end this process when its parent dies, also in the middle of an operation; only on Linux."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


# --- files: Landlock

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ_FILE, _READ_DIR, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 1
_RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_CONNECT_AND_BIND, _SIGNALS_AND_SOCKETS = 3, 3
_FILE_RIGHTS = 1 | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15
"""The rights that a rule for a single file may have."""
_EXECUTE = 1


def _restrict_files(needs: Isolation) -> bool:
    if sys.platform != "linux":
        return False
    call = _libc().syscall
    version = call(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    rights = _RIGHTS_BY_VERSION[max(known for known in _RIGHTS_BY_VERSION if known <= version)]
    network = 0 if needs.connects or version < 4 else _CONNECT_AND_BIND
    attributes = struct.pack("<QQQ", rights, network, _SIGNALS_AND_SOCKETS if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = call(_LANDLOCK_CREATE, attributes, size, 0)
    if rules < 0:
        return False
    try:
        for path in (*_system_paths(), *needs.reads):
            _allow(rules, path, _READ_FILE | _READ_DIR)
        _allow(rules, Path("/dev/null"), _READ_FILE | _WRITE_FILE)
        for path in needs.writes:
            _allow(rules, path, rights & ~_EXECUTE)
        return bool(call(_LANDLOCK_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # Not on this system.
        return
    try:
        rule = struct.pack("<Qi", rights if path.is_dir() else rights & _FILE_RIGHTS, handle)
        if _libc().syscall(_LANDLOCK_ADD, rules, 1, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot add a Landlock rule for {path}")
    finally:
        os.close(handle)


def _system_paths() -> Iterable[Path]:
    """Return the paths that Python and the frameworks may still read: modules, libraries, time zones, certificates."""
    python = {*sys.path, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    system = (
        *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/etc/ssl", "/etc/pki"),
        *("/etc/localtime", "/etc/ld.so.cache", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"),
        *("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/urandom"),
    )
    return [Path(path) for path in sorted({*filter(None, python), *system})]


# --- system calls: seccomp

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_FORBIDDEN = {  # by architecture, in the order of `uname -m` above
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bind": (49, 200),
    "listen": (50, 201),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),  # It can open files and sockets without further calls.
}
_NETWORK = {"socket": (41, 198), "connect": (42, 203)}
_CLONE, _CLONE3, _TGKILL, _SECCOMP = (56, 220), (435, 435), (234, 131), (317, 277)
_CLONE_THREAD = 0x10000
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_ALL_THREADS = 1


def _restrict_calls(needs: Isolation) -> bool:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES or sys.byteorder != "little":
        return False
    column = list(_ARCHITECTURES).index(machine)
    calls = _FORBIDDEN if needs.connects else {**_FORBIDDEN, **_NETWORK}
    program = _write_filter(
        _ARCHITECTURES[machine],
        [number for numbers in calls.values() if (number := numbers[column]) is not None],
        _CLONE[column],
        _CLONE3[column],
        _TGKILL[column],
    )
    code = ctypes.create_string_buffer(b"".join(program))
    descriptor = struct.pack("@HP", len(program), ctypes.addressof(code))
    return bool(_libc().syscall(_SECCOMP[column], 1, _ALL_THREADS, descriptor) == 0)


def _write_filter(architecture: int, forbidden: Sequence[int], clone: int, clone3: int, tgkill: int) -> list[bytes]:
    """Return a program that the kernel runs before each system call: number, architecture and arguments decide."""

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("<HBBI", code, then, otherwise, value)

    refuse, refuse_unknown = step(_RETURN, _ERROR | errno.EPERM), step(_RETURN, _ERROR | errno.ENOSYS)
    program = [
        step(_LOAD, 4),
        step(_EQUAL, architecture, 1, 0),
        refuse,
        step(_LOAD, 0),
        step(_AT_LEAST, _X32, 0, 1),
        refuse,
        step(_EQUAL, clone3, 0, 1),  # Its flags cannot be read here; the C library then uses `clone`.
        refuse_unknown,
    ]
    for number in forbidden:
        program += [step(_EQUAL, number, 0, 1), refuse]
    return [
        *program,
        *(step(_EQUAL, tgkill, 0, 4), step(_LOAD, 16)),  # A process may signal its own threads, to abort for instance.
        *(step(_EQUAL, os.getpid(), 0, 1), step(_RETURN, _ALLOW), refuse),
        *(step(_EQUAL, clone, 1, 0), step(_RETURN, _ALLOW)),
        *(step(_LOAD, 16), step(_HAS_BITS, _CLONE_THREAD, 1, 0), refuse, step(_RETURN, _ALLOW)),
    ]
