"""Train a character GPT and a character BERT on Python's documentation for longer than a chapter may.

    python benchmarks/character_gpt.py [character_gpt] [character_bert]

It takes about two CPU-minutes with one thread and writes `course_lib/results/character_gpt.json` and
`character_bert.json` (or the one that is named), which chapter 09 shows: curves, the held-out loss beside what counting
reaches, and samples.
"""

import math
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib import results
from course_lib.documentation_text import (
    all_windows,
    bigram_loss,
    bigram_table,
    character_shares,
    documentation_text,
    neighbor_loss,
    windows,
)
from course_lib.models.bert import BERT
from course_lib.models.generation import generate
from course_lib.models.gpt import GPT
from course_lib.objectives import SHARE_CHOSEN, mask_tokens, masked_lm_loss

SEED = 0
RECORDS = 20  # points of a curve
HEADS = 4
BETAS = (0.9, 0.99)
WARMUP = 0.1  # the share of the steps in which the rate rises; then it falls along a cosine
GPT_PLAN = {"d_model": 64, "num_layers": 2, "length": 48, "batch": 24, "steps": 2400, "rate": 6e-3}
BERT_PLAN = {"d_model": 64, "num_layers": 1, "length": 16, "batch": 64, "steps": 3400, "rate": 1e-2}
SHARE_HIDDEN = 0.25  # while training, where the paper hides 0.15: more is learned from each text
PROMPT = "The "
WRITTEN = 240  # characters of a sample
SAMPLINGS = ((0.0, None), (0.5, None), (0.8, None), (0.8, 0.9), (1.0, None), (1.5, None))  # temperature and top-p
DIGITS = 4

Loss = Callable[[nn.Module, Tensor, torch.Generator], Tensor]


def train(model: nn.Module, plan: dict[str, Any], loss: Loss, held_out: Callable[[], float]) -> list[list[float]]:
    """Train by a plan; record step, mean training loss since the last record, and held-out loss."""
    text, generator = documentation_text(), torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.Adam(model.parameters(), lr=plan["rate"], betas=BETAS)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, plan["rate"], plan["steps"], pct_start=WARMUP)
    curve, recent = [[0, math.nan, round(held_out(), DIGITS)]], []
    for step in range(1, plan["steps"] + 1):
        value = loss(model, windows(text.train, plan["batch"], plan["length"] + 1, generator), generator)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        schedule.step()
        recent.append(value.item())
        if step % (plan["steps"] // RECORDS) == 0:
            curve.append([step, round(sum(recent) / len(recent), DIGITS), round(held_out(), DIGITS)])
            print(curve[-1], flush=True)
            recent.clear()
    curve[0][1] = curve[0][2]  # no training loss yet: the fresh model is as good on either text
    return curve


def next_character() -> dict[str, Any]:
    """Train the GPT; write with it at several settings."""
    text, plan = documentation_text(), GPT_PLAN
    model = GPT(text.vocab_size, plan["d_model"], HEADS, plan["num_layers"], plan["length"])
    tokens = all_windows(text.validation, plan["length"] + 1)

    def loss(net: nn.Module, batch: Tensor, _: torch.Generator) -> Tensor:
        # One character more than the model has places: so the last place learns too, from which a long text goes on.
        return F.cross_entropy(net(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    def held_out() -> float:
        with torch.no_grad():
            return loss(model, tokens, torch.Generator()).item()

    curve = train(model, plan, loss, held_out)
    prompt, samples = text.characters.encode(PROMPT), []
    for temperature, top_p in SAMPLINGS:
        generator = torch.Generator().manual_seed(SEED)
        written = generate(model, prompt, WRITTEN, temperature, top_p=top_p, generator=generator)
        samples.append({"temperature": temperature, "top_p": top_p, "text": text.characters.decode(written)})
    return {"plan": plan, "parameters": _count(model), "curve": curve, "held_out": curve[-1][-1], "samples": samples}


def masked_character() -> dict[str, Any]:
    """Train the BERT; judge it on held-out places that are all masked, beside a guess from both neighbors."""
    text, plan = documentation_text(), BERT_PLAN
    mask_id = text.vocab_size
    model = BERT(text.vocab_size + 1, plan["d_model"], HEADS, plan["num_layers"], plan["length"])
    tokens = all_windows(text.validation, plan["length"])
    chosen = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(SEED + 1)) < SHARE_CHOSEN
    chosen[:, [0, -1]] = False  # a guess from both neighbors needs both

    def guesses() -> Tensor:
        with torch.no_grad():
            return model(tokens.masked_fill(chosen, mask_id))[0][chosen]

    def loss(net: nn.Module, batch: Tensor, generator: torch.Generator) -> Tensor:
        inputs, labels = mask_tokens(batch[:, :-1], mask_id, text.vocab_size + 1, (mask_id,), generator, p=SHARE_HIDDEN)
        return masked_lm_loss(net(inputs)[0], labels)

    curve = train(model, plan, loss, lambda: F.cross_entropy(guesses(), tokens[chosen]).item())
    right = (guesses().argmax(-1) == tokens[chosen]).double().mean().item()
    neighbors = neighbor_loss(text.train, tokens, chosen.nonzero(), text.vocab_size)
    found = {"plan": plan, "parameters": _count(model), "curve": curve, "held_out": curve[-1][-1]}
    return found | {"accuracy": round(right, DIGITS), "neighbors": round(neighbors, DIGITS)}


def _count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def _with_surroundings(measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run a training and add what counting reaches, the versions, and the CPU-seconds."""
    text, start = documentation_text(), time.process_time()
    torch.manual_seed(SEED)
    found = measured()
    shares = character_shares(text.train, text.vocab_size)
    seen = torch.bincount(text.validation, minlength=text.vocab_size).double()
    alone = -(seen * shares.clamp(min=1 / len(text.train)).log()).sum() / seen.sum()
    return found | {
        "uniform": round(math.log(text.vocab_size), DIGITS),
        "single_characters": round(alone.item(), DIGITS),
        "bigram": round(bigram_loss(bigram_table(text.train, text.vocab_size), text.validation), DIGITS),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cpu_seconds": round(time.process_time() - start),
    }


PARTS = {"character_gpt": next_character, "character_bert": masked_character}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or PARTS:
        print(results.save(name, _with_surroundings(PARTS[name])))
