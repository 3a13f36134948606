"""Wrong and right ways to build the table of waves, shared by the exercise and by the bug hunt."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray
BASE = 10_000.0


def refuse_odd(d_model: int) -> None:
    """Raise what the contract asks for."""
    if d_model % 2:
        raise ValueError(f"`d_model` must be even, got {d_model}.")


def table(length: int, d_model: int, sine: Callable[[int], float], cosine: Callable[[int], float]) -> Array:
    """Fill the table column by column, with frequencies for sine column `i` and for the cosine column after it."""
    encoding = np.zeros((length, d_model))
    places = np.arange(length)
    for i in range(0, d_model, 2):
        encoding[:, i] = np.sin(places * sine(i))
        encoding[:, i + 1] = np.cos(places * cosine(i))
    return encoding


def interleaved(angles: Array) -> Array:
    """Put the sine of each angle before its cosine."""
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)


def by_plain_loops(length, d_model, base=BASE):
    """Follow the formula word by word."""
    refuse_odd(d_model)
    encoding = np.zeros((length, d_model))
    for position in range(length):
        for pair in range(d_model // 2):
            angle = position / base ** (2 * pair / d_model)
            encoding[position, 2 * pair] = math.sin(angle)
            encoding[position, 2 * pair + 1] = math.cos(angle)
    return encoding


def by_the_exponential_of_a_logarithm(length, d_model, base=BASE):
    """Compute the frequencies as most code does."""
    refuse_odd(d_model)
    rates = np.exp(np.arange(0, d_model, 2) * (-math.log(base) / d_model))
    encoding = np.zeros((length, d_model))
    encoding[:, 0::2] = np.sin(np.arange(length)[:, None] * rates)
    encoding[:, 1::2] = np.cos(np.arange(length)[:, None] * rates)
    return encoding


def by_column_numbers(length, d_model, base=BASE):
    """Halve the column number, then choose sine or cosine by its parity."""
    if d_model % 2 != 0:
        raise ValueError("odd width")
    columns = np.arange(d_model)
    angles = np.arange(length)[:, None] / np.power(base, 2 * (columns // 2) / d_model)[None, :]
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


def by_complex_numbers(length, d_model, base=BASE):
    """Take sine and cosine as the parts of one complex number."""
    refuse_odd(d_model)
    pairs = np.arange(d_model // 2) / (d_model // 2)
    turning = np.exp(1j * np.outer(np.arange(length), base**-pairs))
    return np.stack([np.imag(turning), np.real(turning)], axis=-1).reshape(length, d_model)


def by_a_phase(length, d_model, base=BASE):
    """Write the cosine as a sine a quarter turn later."""
    refuse_odd(d_model)
    pair, late = np.divmod(np.arange(d_model), 2)
    return np.sin(np.outer(np.arange(length), base ** (-2 * pair / d_model)) + late * math.pi / 2)


ACCEPTED_TABLES = (
    by_plain_loops,
    by_the_exponential_of_a_logarithm,
    by_column_numbers,
    by_complex_numbers,
    by_a_phase,
)
