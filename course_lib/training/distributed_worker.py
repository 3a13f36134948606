"""The inside of one of several processes: join the group, do what was asked, count what came over the network."""

import os
import pickle
import socket
import struct
import sys
import threading
import time
from datetime import timedelta
from typing import Any, BinaryIO

import torch
import torch.distributed as dist
from torch import Tensor

GIVE_UP = timedelta(seconds=60)  # when another process stays silent
TCP_INFO_BYTES = 256
RECEIVED_AT = 128  # offset of tcpi_bytes_received in Linux's struct tcp_info, a 64-bit number
OWN_SOCKETS = "/proc/self/fd"


class Link:
    """What a process knows of its group: who it is, how to send, and how many bytes it has received.

    Every operation is counted under its name: how often it ran, and the bytes of the tensors that it was given.
    """

    def __init__(self, rank: int, count: int) -> None:
        self.rank, self.count = rank, count
        self.calls: dict[str, int] = {}
        self.tensor_bytes: dict[str, int] = {}

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes; each gets the sum."""
        self._note("all_reduce", tensor)
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    def send(self, tensor: Tensor, to: int) -> None:
        """Send a tensor to another process."""
        self._note("send", tensor)
        dist.send(tensor.detach().contiguous(), to)

    def receive(self, shape: tuple[int, ...], source: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Wait for a tensor of a known shape from another process."""
        arrived = torch.empty(shape, dtype=dtype)
        dist.recv(arrived, source)
        return arrived

    def exchange_counts(self, counts: Tensor) -> Tensor:
        """Tell every process how many rows will come, and hear the same from each."""
        self._note("counts", counts)
        heard = torch.empty_like(counts)
        dist.all_to_all_single(heard, counts)
        return heard

    def all_to_all(self, rows: Tensor, sent: list[int], expected: list[int]) -> Tensor:
        """Send the first `sent[0]` rows to process 0, the next to process 1, …; give what came, in order of rank."""
        self._note("all_to_all", rows)
        arrived = rows.new_empty((sum(expected), *rows.shape[1:]))
        dist.all_to_all_single(arrived, rows.detach().contiguous(), expected, sent)
        return arrived

    def wait_for_all(self) -> None:
        """Go on when every process has come here."""
        dist.barrier()

    def received_bytes(self) -> int | None:
        """Ask the operating system how many bytes have arrived on this process's connections; None if it won't say."""
        if not sys.platform.startswith("linux") or not os.path.isdir(OWN_SOCKETS):
            return None
        total = 0
        for name in os.listdir(OWN_SOCKETS):
            total += _received_on(int(name))
        return total or None

    def _note(self, name: str, tensor: Tensor) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        self.tensor_bytes[name] = self.tensor_bytes.get(name, 0) + tensor.nbytes


def _received_on(descriptor: int) -> int:
    try:
        with socket.socket(fileno=os.dup(descriptor)) as found:
            info = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    except OSError:  # a file, a pipe, a socket of another kind, or closed meanwhile
        return 0
    return struct.unpack_from("Q", info, RECEIVED_AT)[0] if len(info) >= RECEIVED_AT + 8 else 0


def _leave_with_parent(stream: BinaryIO) -> None:
    """End this process when nobody holds the other end of its input any more."""
    stream.read(1)
    os._exit(1)


def _answer(rank: int, count: int, meeting: str, stream: BinaryIO) -> tuple[bool, Any]:
    try:
        function, args = pickle.load(stream)
        threading.Thread(target=_leave_with_parent, args=(stream,), daemon=True).start()
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count, timeout=GIVE_UP)
        result = function(Link(rank, count), *args)
        dist.barrier()
        return True, result
    except BaseException as error:
        return False, (time.time(), f"{type(error).__name__}: {error}")


def main() -> None:
    """Read a call from the standard input and write its answer to the standard output, which prints must not reach."""
    rank, count, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer = _answer(rank, count, meeting, sys.stdin.buffer)
    pickle.dump(answer, answers)
    answers.close()
    os._exit(0)


if __name__ == "__main__":
    main()
