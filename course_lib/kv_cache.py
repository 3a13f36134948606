"""Keep the keys and values of past tokens, so that a decoding step projects the new token alone."""

from jaxtyping import Float
from torch import Tensor

from course_lib.efficient.fitting import require_count

FIRST_CAPACITY = 16  # tokens; without a limit the room doubles whenever it is full


class KVCache:
    """Hold the keys and values of one layer, for all sequences of a batch, and grow by what is appended.

    A new token's query attends to all of them; earlier tokens never see it, so their keys and values stay as they
    are. No gradient is recorded: a cache serves decoding, not training.

    Source: Shazeer 2019, §2.4, "multi-head attention (incremental)", arXiv 1911.02150.
    """

    def __init__(self, max_length: int | None = None) -> None:
        """Make an empty cache.

        Args:
            max_length: most tokens that it may hold, whose room is taken at the first `append`; no limit if not
                given.

        Raises:
            TypeError: `max_length` is not an int.
            ValueError: `max_length` is below 1.
        """
        if max_length is not None:
            require_count("max_length", max_length)
        self.max_length = max_length
        self.reset()

    @property
    def length(self) -> int:
        """Return the number of tokens held."""
        return self._length

    def append(
        self, key: Float[Tensor, "... new d_k"], value: Float[Tensor, "... new d_v"]
    ) -> tuple[Float[Tensor, "... token d_k"], Float[Tensor, "... token d_v"]]:
        """Copy in the keys and values of new tokens; return those of all tokens so far, as views of the cache.

        Raises:
            ValueError: the tokens do not fit in, or the tensors do not match each other or those held; the cache
                stays as it was.
        """
        self._require_match(key, value)
        length = self._length + key.shape[-2]
        if self.max_length is not None and length > self.max_length:
            raise ValueError(
                f"The cache holds {self._length} of at most {self.max_length} tokens; {key.shape[-2]} more do not fit. "
                "Reset it, or make one with a larger `max_length`."
            )
        self._keys, self._values = (
            self._with_room(held, new, length) for held, new in ((self._keys, key), (self._values, value))
        )
        self._keys[..., self._length : length, :] = key.detach()
        self._values[..., self._length : length, :] = value.detach()
        self._length = length
        return self._keys[..., :length, :], self._values[..., :length, :]

    def reset(self) -> None:
        """Forget everything; tensors that were returned before stay valid."""
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._length = 0

    def _with_room(self, held: Tensor | None, new: Tensor, length: int) -> Tensor:
        """Return the buffer itself while it has room, or else a larger one that begins with what it holds."""
        capacity = 0 if held is None else held.shape[-2]
        if held is not None and length <= capacity:
            return held
        room = self.max_length or max(length, 2 * capacity, FIRST_CAPACITY)
        larger = new.new_empty(*new.shape[:-2], room, new.shape[-1])
        if held is not None:
            larger[..., : self._length, :] = held[..., : self._length, :]
        return larger

    def _require_match(self, key: Tensor, value: Tensor) -> None:
        if key.dim() < 2 or key.shape[:-1] != value.shape[:-1]:
            raise ValueError(
                f"`key` {tuple(key.shape)} and `value` {tuple(value.shape)} must be (..., token, features) with the "
                "same leading axes and as many tokens."
            )
        for name, new, held in (("key", key, self._keys), ("value", value, self._values)):
            if held is None:
                continue
            if new.shape[:-2] != held.shape[:-2] or new.shape[-1] != held.shape[-1]:
                raise ValueError(
                    f"`{name}` {tuple(new.shape)} does not continue what the cache holds, "
                    f"{(*held.shape[:-2], self._length, held.shape[-1])}; only the tokens, axis -2, may differ."
                )
            if new.dtype != held.dtype or new.device != held.device:
                raise ValueError(
                    f"`{name}` is {new.dtype} on {new.device}, and the cache holds {held.dtype} on {held.device}."
                )
