"""Judge a solution across the trust line: programs go to the student's process, plain results come back.

`serve` runs in the student's process, where everything may have been tampered with; nothing that it sends is
believed to be more than data. `RemoteRunner`, `verdict_for` and `judge_requests` run in a process that the student's
code never enters.
"""

from __future__ import annotations

import json
import random
import secrets
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from autograder.codec import MAX_BYTES, CodecError, decode, encode
from autograder.exercise import UnknownExercise, find_exercise
from autograder.grading.judged import REQUEST_BYTES, Judged
from autograder.guard import PATIENCE, SECONDS_PER_CASE, Forbidden, TimeIsUp
from autograder.judge import judge, run_here
from autograder.program import Program, Run
from autograder.verdict import Heard, Verdict

FRAME = struct.Struct(">I")
CHUNK = 2**20
SECONDS_OF_GRACE = 5.0  # beyond the limit of a case: for the way there and back
SECONDS_PER_PROGRAM = PATIENCE * SECONDS_PER_CASE + SECONDS_OF_GRACE
TOKEN_BYTES = 8
LONGEST_MESSAGE = 4_000
LONGEST_PRINT = 2_000
LONGEST_WARNING = 300
MOST_WARNINGS = 20

_inherited: list[socket.socket] = []


class NoAnswer(Exception):
    """The student's process did not answer as a faithful one does."""


class NotAFunction(Exception):
    """The name is missing in the notebook, or what it names cannot be called."""


def send_frame(link: socket.socket, data: bytes) -> None:
    """Send one message."""
    link.sendall(FRAME.pack(len(data)) + data)


def receive_frame(link: socket.socket, deadline: float | None = None) -> bytes:
    """Receive one message.

    Raises:
        NoAnswer: The other end is gone, or claims a message of more than 64 MB.
        TimeoutError: It did not send a whole message in time.
    """
    (length,) = FRAME.unpack(_receive(link, FRAME.size, deadline))
    if length > MAX_BYTES + CHUNK:
        raise NoAnswer("it sent a malformed message (too long)")
    return _receive(link, length, deadline)


def _receive(link: socket.socket, length: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        if deadline is not None:
            link.settimeout(max(deadline - time.monotonic(), 0.001))
        part = link.recv(min(length - len(data), CHUNK))
        if not part:
            raise NoAnswer("it gave no answer")
        data += part
    return bytes(data)


def inherit(link: socket.socket) -> None:
    """Keep the student's end of the link for `serve_inherited`."""
    _inherited[:] = [link]


def serve_inherited(namespace: Mapping[str, Any]) -> None:
    """Answer requests about a notebook's functions until the judge has what it needs."""
    serve(_inherited[0], namespace)


def serve(link: socket.socket, namespace: Mapping[str, Any]) -> None:
    """Run each program that comes over the link, and send back what it showed."""
    while True:
        request = decode(receive_frame(link))
        if "program" not in request:
            return
        reply = {"id": request["id"], **answer(request, namespace)}
        try:
            data = encode(reply)
        except CodecError as error:
            data = encode({"id": request["id"], "problem": "unsendable", "about": str(error)})
        send_frame(link, data)


def answer(request: Mapping[str, Any], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Run one program over the function that a request names."""
    name = request["solution"]
    if name not in namespace:
        return {"problem": "missing", "about": name}
    solution = namespace[name]
    if not callable(solution):
        return {"problem": "uncallable", "about": f"{type(solution).__name__} {str(solution)[:60]!r}"}
    heard = Heard()
    try:
        found: dict[str, Any] = {
            "run": run_here(find_exercise(request["exercise"]), solution, request["program"], heard)
        }
    except TimeIsUp:
        found = {"problem": "time", "about": ""}
    except Forbidden as refusal:
        found = {"problem": "forbidden", "about": refusal.name}
    return found | {"printed": heard.printed, "left_out": heard.left_out, "warned": heard.warned}


class RemoteRunner:
    """Run programs in the student's process; an instance is the runner that `judge` takes."""

    def __init__(
        self,
        link: socket.socket,
        exercise: str,
        solution: str,
        seconds: float = SECONDS_PER_PROGRAM,
    ):
        """Speak over a link about one function of the notebook.

        Args:
            link: The trusted end of the link.
            exercise: The exercise's name.
            solution: The name of the function in the notebook.
            seconds: How long one program may take.
        """
        self.link, self.exercise, self.solution, self.seconds = link, exercise, solution, seconds
        self.heard = Heard()
        self.timed_out = False

    def __call__(self, program: Program) -> Run:
        """Have one program run.

        Raises:
            NoAnswer: The process is gone, or what it sent is no answer to this request.
            NotAFunction: There is no such function in the notebook.
            TimeIsUp: It did not return in time.
            Forbidden: It called what the exercise forbids.
        """
        token = secrets.token_hex(TOKEN_BYTES)
        request = {"id": token, "exercise": self.exercise, "solution": self.solution, "program": program}
        reply = self._exchange(encode(request))
        if type(reply) is not dict or reply.get("id") != token:
            raise NoAnswer("it sent a malformed message (no answer to the question)")
        self._hear(reply)
        if "problem" in reply:
            raise self._problem(str(reply["problem"]), str(reply.get("about", ""))[:LONGEST_PRINT])
        if type(reply.get("run")) is not Run:
            raise NoAnswer("it sent a malformed message (no result)")
        return reply["run"]

    def _exchange(self, data: bytes) -> Any:
        deadline = time.monotonic() + self.seconds
        try:
            self.link.settimeout(self.seconds)
            send_frame(self.link, data)
            return decode(receive_frame(self.link, deadline))
        except TimeoutError:
            self.hang_up()
            self.timed_out = True
            raise TimeIsUp from None
        except CodecError as error:
            raise NoAnswer(f"it sent a malformed message ({error})") from None
        except OSError:
            raise NoAnswer("it gave no answer") from None

    def _hear(self, reply: Mapping[str, Any]) -> None:
        printed, left_out, warned = (reply.get(name) for name in ("printed", "left_out", "warned"))
        if type(printed) is str:
            self.heard.printed = (self.heard.printed + printed)[:LONGEST_PRINT]
        if type(left_out) is int:
            self.heard.left_out += max(left_out, 0)
        if type(warned) is list:
            texts = [text[:LONGEST_WARNING] for text in warned if type(text) is str]
            self.heard.warned = list(dict.fromkeys([*self.heard.warned, *texts]))[:MOST_WARNINGS]

    def _problem(self, problem: str, about: str) -> BaseException:
        if problem == "time":
            self.timed_out = True
            return TimeIsUp()
        if problem == "forbidden":
            return Forbidden(about)
        if problem == "missing":
            return NotAFunction(
                f"`{self.solution}` is not defined in this notebook: its cell is missing or raised an error"
            )
        if problem == "uncallable":
            return NotAFunction(
                f"give the function itself, check({self.solution}), not what a call of it returns; this is {about}"
            )
        return NoAnswer(f"its result cannot be judged ({about})")

    def finish(self) -> None:
        """Let the student's process go on with the notebook."""
        try:
            send_frame(self.link, encode({"id": "end"}))
        except OSError:
            pass

    def hang_up(self) -> None:
        """End the link, so that no late answer is taken for the next one's."""
        try:
            self.link.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def verdict_for(exercise_name: str, remote: RemoteRunner, hidden: bool, seed: int) -> Judged:
    """Judge the notebook's function; whatever goes wrong in its process is a failed verdict with the reason.

    Raises:
        UnknownExercise: There is no such exercise, which is not the student's fault.
    """
    exercise = find_exercise(exercise_name)
    answered = True
    try:
        verdict = judge(exercise, remote, hidden, seed)
    except NotAFunction as problem:
        verdict = Verdict(False, exercise_name, None, None, f"{exercise_name}: {problem}.", seed)
    except NoAnswer as problem:
        answered = False
        remote.hang_up()
        message = f"{exercise_name}: no verdict, because the notebook's process did not answer properly: {problem}."
        verdict = Verdict(False, exercise_name, None, None, message, seed)
    except Exception as error:
        message = f"{exercise_name}: what your code returned could not be judged ({type(error).__name__})."
        verdict = Verdict(False, exercise_name, None, None, message, seed)
    if len(verdict.message) > LONGEST_MESSAGE:
        verdict = Verdict(**{**asdict(verdict), "message": verdict.message[:LONGEST_MESSAGE] + " …"})
    return Judged(verdict, answered, remote.heard, remote.timed_out)


def judge_requests(channel: socket.socket) -> None:
    """Give verdicts until the grader's end closes; each request brings its own link to a student's process."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(channel, REQUEST_BYTES, 1)
        if not data:
            return
        request = json.loads(data)
        with socket.socket(fileno=descriptors[0]) as link:
            _seed_everything(request["seed"])
            runner = RemoteRunner(link, request["exercise"], request["solution"])
            try:
                reply = asdict(verdict_for(request["exercise"], runner, request["hidden"], request["seed"]))
            except UnknownExercise as error:
                reply = {"error": str(error)}
            channel.sendall(json.dumps(reply).encode())
            runner.finish()


def _seed_everything(seed: int) -> None:
    """Make a verdict independent of those before it."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
