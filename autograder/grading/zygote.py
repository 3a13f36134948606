"""Hold every library ready in one quiet process, and fork a fresh one-shot process from it on request.

The zygote has one thread and runs no student's code, ever. It takes requests over a socket pair that it inherited,
so nobody else can reach it. Each request is a JSON object with the far ends of the new process's sockets. What is
forked first is a keeper, and what the keeper forks is the confined process, which first closes all that is not its
own and then becomes a notebook's kernel, a judge, or a probe of the walls.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import random
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

from autograder.grading import keeper, linux, remote, sandbox
from autograder.grading.limits import Limits
from autograder.grading.sandbox import NAMESPACES, Room

REQUEST_BYTES = 200_000
LIBRARIES = (
    *("numpy", "torch", "torch.nn.functional", "torch.testing", "matplotlib", "matplotlib.pyplot"),
    *("matplotlib.backends.backend_agg", "IPython", "ipykernel.kernelapp", "ipykernel.zmqshell"),
    *("course_lib", "autograder", "autograder.checking", "autograder.codec"),
)
LATE_LIBRARIES = (  # what these import when a kernel starts, draws, or shows an error
    *("IPython.core.completerlib", "IPython.core.debugger", "IPython.core.logger", "IPython.core.oinspect"),
    *("IPython.core.pylabtools", "IPython.extensions.storemagic", "IPython.utils.wildcard", "encodings.idna"),
    *("faulthandler", "matplotlib_inline.config", "numpy.testing", "PIL.BmpImagePlugin", "PIL.GifImagePlugin"),
    *("PIL.JpegImagePlugin", "PIL.PpmImagePlugin", "pygments.formatters.terminal256", "resource", "stack_data"),
    *("torch._subclasses.schema_check_mode", "tornado.locks", "tornado.platform.asyncio", "tornado.queues"),
    "zmq.utils.garbage",
)
BOUND_TO_A_SHELL = ("matplotlib_inline.backend_inline",)  # it joins the notebook that is there when it is imported
KERNEL, JUDGE, PROBE = "kernel", "judge", "probe"
READY = b"ready"


def main(descriptor: int, folder: str, libraries: bool) -> None:
    """Serve until the grader's end of the socket closes, remove the run's private folder, and end at once.

    Args:
        descriptor: The grader's socket.
        folder: The run's private folder.
        libraries: Load what notebooks need, and say when it is done, before anything is served.
    """
    channel, own = socket.socket(fileno=descriptor), os.getpid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the grader's to handle
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report by themselves; none is to stay a zombie
    try:
        if libraries:
            preload()
            channel.send(READY)
        _serve(channel)
    finally:
        if os.getpid() == own:  # a fork never comes here, but it must not matter if one did
            shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # to take all the libraries down in order would only cost time


def _serve(channel: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            data, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES, 2)
            if not data:
                return
            fork(channel, json.loads(data), descriptors)
            for number in descriptors:
                os.close(number)


def preload() -> None:
    """Import what notebooks and checks need, so that no fork has to."""
    gc.disable()  # once at the end is enough
    for name in (*LIBRARIES, *LATE_LIBRARIES):
        with contextlib.suppress(Exception):  # a module that a notebook alone can import
            importlib.import_module(name)
    from autograder.exercise import all_exercises

    all_exercises()
    _load_course_lib()
    _do_without_a_debugger()
    _first_steps()
    for name in BOUND_TO_A_SHELL:
        sys.modules.pop(name, None)
    gc.collect()  # forks look for garbage less often then
    gc.freeze()
    gc.enable()


def _load_course_lib() -> None:
    """Load what chapters import from `course_lib`."""
    import course_lib

    for module in pkgutil.iter_modules(course_lib.__path__, "course_lib."):
        if not module.name.endswith("_test"):
            importlib.import_module(module.name)


def _do_without_a_debugger() -> None:
    """Let kernels start without a debugger; nobody would speak to it, and to load it takes a tenth of a second."""
    sys.modules["debugpy"] = None  # pyright: ignore[reportArgumentType]
    importlib.import_module("ipykernel.debugger")
    del sys.modules["debugpy"]


def _first_steps() -> None:
    """Let PyTorch look at the processor and build its tables once, without threads and random numbers.

    The first count alone loads so much that it would use up a case's time.
    """
    import torch

    from autograder.counting import Counter

    torch.set_num_threads(1)
    layer = torch.ones(4, 4, requires_grad=True)
    with Counter():
        torch.nn.functional.layer_norm(torch.nn.functional.softmax(layer @ layer, -1), (4,)).sum().backward()


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def fork(channel: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    """Fork a keeper for one request."""
    connection = socket.socket(fileno=os.dup(descriptors[0]))
    if _threads() != 1:
        _tell(connection, error=f"the zygote has {_threads()} threads; a fork of it would hang")
        connection.close()
        return
    try:
        zygote, pid = os.getpid(), os.fork()
    except OSError as error:
        _tell(connection, error=f"no process can be started: {error.strerror}")
        connection.close()
        return
    if pid:
        connection.close()
        return
    code = 1
    try:
        channel.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = _keeper(request, connection, descriptors[1:], zygote)
    except BaseException:
        _tell(connection, error=traceback.format_exc(limit=-3))
    finally:
        os._exit(code)


def _tell(connection: socket.socket, descriptors: tuple[int, ...] = (), **message: Any) -> None:
    with contextlib.suppress(ConnectionError):
        socket.send_fds(connection, [json.dumps(message).encode()], descriptors)


def _keeper(request: dict[str, Any], connection: socket.socket, others: list[int], zygote: int) -> int:
    room, limits = Room(**request["room"]), Limits(**request["limits"])
    os.setsid()
    sandbox.before_fork(room)
    if room.kind == NAMESPACES:
        linux.die_with_parent(signal.SIGKILL, zygote)
    alive, alive_end = os.pipe()
    keeper_pid = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(alive_end)
        _confined(request, room, limits, connection, others, (alive, keeper_pid))
    os.close(alive)
    for number in others:
        os.close(number)
    handle = os.pidfd_open(pid)
    _tell(connection, (handle,), pid=pid)
    os.close(handle)
    ending = keeper.keep(pid, connection, room, limits, zygote)
    _tell(connection, ended=ending.code, reason=ending.reason)
    return 0


def _confined(
    request: dict[str, Any],
    room: Room,
    limits: Limits,
    connection: socket.socket,
    others: list[int],
    keeper_end: tuple[int, int],
) -> None:
    """Close, confine, become what was asked for; never returns."""
    try:
        alive, keeper_pid = keeper_end
        os.setsid()  # a signal to the own group reaches the keeper otherwise, even out of another process namespace
        linux.die_with_parent(signal.SIGKILL, 0 if room.kind == NAMESPACES else keeper_pid)
        _keep_only(connection.fileno(), alive, *others)
        os.set_blocking(alive, False)
        with contextlib.suppress(BlockingIOError):
            os.read(alive, 1)
            os._exit(1)  # the keeper is gone already
        os.close(alive)
        _environment(request, room)
        sandbox.enter(room, limits)
        linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)  # giving up rights has cleared it
        _reseed(request["seed"], limits.threads)
        _ROLES[request["role"]](request, room, connection, others)
    except BaseException as error:
        _tell(connection, error=f"{type(error).__name__}: {error}")
    finally:
        os._exit(1)


def _keep_only(*descriptors: int) -> None:
    """Close every file but these, and give the process silent standard streams."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    kept = sorted({2, *descriptors})
    for lower, upper in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(lower + 1, upper)


def _environment(request: dict[str, Any], room: Room) -> None:
    kept = {name: os.environ[name] for name in os.environ if name.endswith("_NUM_THREADS") or name == "MPLBACKEND"}
    own = {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": room.home,
        "USER": "student",
        "TMPDIR": room.temporary,
        "IPYTHONDIR": os.path.join(room.home, ".ipython"),
        "MPLCONFIGDIR": os.path.join(room.home, ".matplotlib"),
        "LANG": "C.UTF-8",
    }
    os.environ.clear()
    os.environ.update({**kept, **own, **request.get("env", {})})
    tempfile.tempdir = None  # the zygote may have looked it up already


def _reseed(seed: int, threads: int) -> None:
    """Start every random generator from one seed; without this all forks would share the zygote's state."""
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    torch.set_num_threads(threads)


def _become_kernel(request: dict[str, Any], room: Room, connection: socket.socket, others: list[int]) -> None:
    from ipykernel.kernelapp import IPKernelApp
    from traitlets.config import Config

    if others:
        remote.inherit(socket.socket(fileno=others[0]))
    sys.argv = ["ipykernel_launcher"]
    config = Config()
    config.HistoryManager.enabled = False
    config.IPKernelApp.log_level = "CRITICAL"
    config.IPKernelApp.parent_handle = 0  # its own watch over the parent takes process 1 for a dead grader
    sys.path.insert(0, "")  # a notebook may import what lies beside it; the zygote itself must not
    app = IPKernelApp.instance(connection_file=request["connection_file"], config=config)
    app.initialize([])
    sandbox.seal(room)
    _tell(connection, ready=True)
    connection.close()
    app.start()
    os._exit(0)


def _become_judge(request: dict[str, Any], room: Room, connection: socket.socket, others: list[int]) -> None:
    sandbox.seal(room)
    _tell(connection, ready=True)
    connection.close()
    remote.judge_requests(socket.socket(fileno=others[0]))
    os._exit(0)


def _become_probe(request: dict[str, Any], room: Room, connection: socket.socket, others: list[int]) -> None:
    sandbox.seal(room)
    _tell(connection, ready=True, walls=sandbox.walls_that_stand(room, request["secret"]))
    os._exit(0)


_ROLES = {KERNEL: _become_kernel, JUDGE: _become_judge, PROBE: _become_probe}
