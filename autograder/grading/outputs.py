"""Collect what one cell shows, in nbformat's form, and keep it small and well-formed whatever the kernel sends."""

from __future__ import annotations

from typing import Any

import nbformat
from nbformat import NotebookNode

FLOOD = 20  # so many times the kept size, and the cell is stopped
KINDS = ("stream", "display_data", "execute_result", "error", "update_display_data", "clear_output")


class Outputs:
    """The outputs of one cell, message by message."""

    def __init__(self, request: str, most_bytes: int):
        """Collect the outputs of one request.

        Args:
            request: The request's message id.
            most_bytes: How many bytes are kept.
        """
        self.request, self.most_bytes = request, most_bytes
        self.cells: list[NotebookNode] = []
        self.count: int | None = None
        self.kept = self.dropped = 0
        self.idle = self.replied = self.failed = self.too_long = False
        self._clear_next = False
        self._displays: dict[str, list[NotebookNode]] = {}

    @property
    def done(self) -> bool:
        """Tell whether the cell has ended and all that it showed has come."""
        return self.idle and self.replied

    @property
    def flooded(self) -> bool:
        """Tell whether the cell prints without end."""
        return self.dropped > FLOOD * self.most_bytes

    def take(self, message: dict[str, Any], size: int) -> None:
        """Take one message of any channel; messages that are not about this cell, or not well-formed, are ignored."""
        parent, header, content = (message.get(name) for name in ("parent_header", "header", "content"))
        if not all(isinstance(part, dict) for part in (parent, header, content)):
            return
        if parent.get("msg_id") != self.request:  # type: ignore[union-attr]
            return
        self._take(header.get("msg_type"), content, message, size)  # type: ignore[union-attr,arg-type]

    def _take(self, kind: Any, content: dict[str, Any], message: dict[str, Any], size: int) -> None:
        if kind == "status":
            self.idle = self.idle or content.get("execution_state") == "idle"
        elif kind == "execute_reply":
            self.replied = True
            self.failed = self.failed or content.get("status") != "ok"
            self._number(content)
        elif kind == "execute_input":
            self._number(content)
        elif kind in KINDS and _well_formed(kind, content):
            if self.kept + size > self.most_bytes:
                self._drop(size)
                return
            self.kept += size
            self._show(kind, content, message)

    def _number(self, content: dict[str, Any]) -> None:
        count = content.get("execution_count")
        self.count = count if type(count) is int and count >= 0 else self.count

    def _drop(self, size: int) -> None:
        if not self.dropped:
            text = f"\n[output beyond {self.most_bytes:,} bytes is left out]\n"
            self.cells.append(nbformat.v4.new_output("stream", name="stdout", text=text))
        self.dropped += size

    def _show(self, kind: str, content: dict[str, Any], message: dict[str, Any]) -> None:
        if kind == "clear_output":
            self._clear_next = True
            if not content.get("wait"):
                self._clear()
            return
        if kind == "update_display_data":
            for output in self._displays.get(_display(content), ()):
                output["data"], output["metadata"] = content["data"], content["metadata"]
            return
        if self._clear_next:
            self._clear()
        self.failed = self.failed or kind == "error"
        if kind == "stream" and self.cells and self.cells[-1].get("name") == content["name"]:
            self.cells[-1]["text"] += content["text"]
            return
        if kind == "execute_result":
            content = {**content, "execution_count": self.count}
        output = nbformat.v4.output_from_msg({**message, "content": content})
        self.cells.append(output)
        if name := _display(content):
            self._displays.setdefault(name, []).append(output)

    def _clear(self) -> None:
        self._clear_next = False
        self.cells.clear()


def _display(content: dict[str, Any]) -> str:
    transient = content.get("transient")
    name = transient.get("display_id") if isinstance(transient, dict) else None
    return name if isinstance(name, str) else ""


def _well_formed(kind: str, content: dict[str, Any]) -> bool:
    """Tell whether the content has the form that a notebook file may hold."""
    if kind == "stream":
        return content.get("name") in ("stdout", "stderr") and isinstance(content.get("text"), str)
    if kind == "error":
        trace = content.get("traceback")
        texts = [content.get("ename"), content.get("evalue"), *(trace if isinstance(trace, list) else [None])]
        return all(isinstance(text, str) for text in texts)
    if kind == "clear_output":
        return True
    data, metadata = content.get("data"), content.get("metadata")
    return (
        isinstance(metadata, dict)
        and isinstance(data, dict)
        and all(isinstance(text, str) or name.endswith("json") for name, text in data.items())
    )
