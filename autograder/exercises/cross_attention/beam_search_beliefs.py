"""The wrong beliefs about `beam_search`, and other forms that every check accepts."""

import heapq

import torch

from autograder.exercises.cross_attention.beam_search import exercise
from course_lib import decoding


def _mean(total, tokens):
    return total / (len(tokens) - 1)


class _Search:
    """The search with its rules as methods, so that a belief can replace one of them."""

    def chances(self, logits):
        return logits.double().log_softmax(-1)

    def candidates(self, live, rows, beams):
        return [
            (total + row[token].item(), [*tokens, token])
            for (total, tokens), row in zip(live, rows, strict=True)
            for token in range(len(row))
        ]

    def keep(self, candidates, beams, finished, end_id):
        return sorted(candidates, reverse=True)[:beams]

    def score(self, total, tokens, end_id):
        return _mean(total, tokens)

    def stop(self, live, finished, beams):
        return not live

    def pool(self, live, finished):
        return finished + live

    def search(self, step, start_id, end_id, max_length, beams):
        live, finished = [(0.0, [start_id])], []
        for _ in range(max_length - 1):
            rows = self.chances(step(torch.tensor([tokens for _, tokens in live])))
            kept = self.keep(self.candidates(live, rows, beams), beams, finished, end_id)
            finished += [pair for pair in kept if pair[1][-1] == end_id]
            live = [pair for pair in kept if pair[1][-1] != end_id]
            if self.stop(live, finished, beams):
                break
        score, tokens = max((self.score(total, tokens, end_id), tokens) for total, tokens in self.pool(live, finished))
        return tokens, score


@exercise.misconception("""
    Your search gives what a single beam gives: only one beginning is followed. A first token that is second best may
    open the way to a better whole; keep `beams` of them.
""")
def greedy(step, start_id, end_id, max_length, beams):
    return _Search().search(step, start_id, end_id, max_length, 1)


@exercise.misconception("""
    Your score is the plain sum. Every further token makes a sum of log-probabilities smaller, so it prefers whatever
    ends early. Divide by the number of generated tokens.
""")
def sum_as_score(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.score = lambda total, tokens, end_id: total
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    You divide by the length with the start. The start was given, not generated: nothing was paid for it.
""")
def start_counted(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.score = lambda total, tokens, end_id: total / len(tokens)
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    You do not count the end as a generated token. Its log-probability is in the sum, so it belongs in the count as
    well.
""")
def end_not_counted(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.score = lambda total, tokens, end_id: total / max(1, len(tokens) - 1 - (tokens[-1] == end_id))
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    You add up raw logits. A row of logits may lie high or low as a whole without meaning anything; only after
    `log_softmax` do numbers of different rows compare.
""")
def raw_logits(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.chances = lambda logits: logits.double()
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    You add up probabilities. Probabilities of steps in a row multiply; their logarithms are what adds.
""")
def probabilities_added(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.chances = lambda logits: logits.double().softmax(-1)
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Your beam is refilled: where a sequence ends, the next best one moves up, so that `beams` are always live. Many
    libraries do so. Here an ending takes one of the `beams` places of its step, and the place stays empty.
""")
def refilled(step, start_id, end_id, max_length, beams):
    search = _Search()

    def keep(candidates, beams, finished, end_id):
        ordered = sorted(candidates, reverse=True)
        going_on = [pair for pair in ordered if pair[1][-1] != end_id][:beams]
        worst = going_on[-1][0] if len(going_on) == beams else float("-inf")
        return [pair for pair in ordered if pair[1][-1] == end_id and pair[0] >= worst] + going_on

    search.keep = keep
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Your beam shrinks for good with each ending: the next step keeps fewer. The original search of Sutskever et al. does
    that. Here the place is empty in its own step only; the next step keeps the `beams` best again.
""")
def shrinks_for_good(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.keep = lambda candidates, beams, finished, end_id: sorted(candidates, reverse=True)[
        : max(0, beams - len(finished))
    ]
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Ended sequences stay in your beam and have to stand against live ones at each later step; a good one can be pushed
    out again. Let an ended sequence leave for a pool of its own.
""")
def ended_ones_compete(step, start_id, end_id, max_length, beams):
    beam = [(0.0, [start_id])]
    for _ in range(max_length - 1):
        done = [pair for pair in beam if len(pair[1]) > 1 and pair[1][-1] == end_id]
        live = [pair for pair in beam if pair not in done]
        if not live:
            break
        rows = step(torch.tensor([tokens for _, tokens in live])).double().log_softmax(-1)
        beam = sorted(done + _Search().candidates(live, rows, beams), reverse=True)[:beams]
    score, tokens = max((_mean(total, tokens), tokens) for total, tokens in beam)
    return tokens, score


@exercise.misconception("""
    You stop at the first sequence that ends. A live one may still finish with a better mean.
""")
def stops_at_the_first_end(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.stop = lambda live, finished, beams: not live or bool(finished)
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Each of your beginnings keeps one continuation, its own best. The `beams` places go to the best continuations of
    **all** beginnings together: a good one may get several, a bad one none.
""")
def one_each(step, start_id, end_id, max_length, beams):
    search = _Search()

    def keep(candidates, beams, finished, end_id):
        if len(candidates[0][1]) == 2:
            return sorted(candidates, reverse=True)[:beams]
        best = {}
        for total, tokens in candidates:
            best[tuple(tokens[:-1])] = max(best.get(tuple(tokens[:-1]), (float("-inf"), [])), (total, tokens))
        return list(best.values())

    search.keep = keep
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Only sequences that ended may win in your search. One that ran into `max_length` is a result as well; the better
    mean decides.
""")
def only_ended_win(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.pool = lambda live, finished: finished or live
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Sequences that ended are lost: only the live ones at the end may win. Keep ended ones in a pool, and compare.
""")
def only_live_win(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.pool = lambda live, finished: live or finished
    return search.search(step, start_id, end_id, max_length, beams)


@exercise.misconception("""
    Your sequences may grow one token too long: the start counts in `max_length`.
""")
def one_too_long(step, start_id, end_id, max_length, beams):
    return _Search().search(step, start_id, end_id, max_length + 1, beams)


@exercise.misconception("""
    The winner is chosen by its sum, and only its score is a mean. The choice needs the division: it is made so that
    long sequences can win.
""")
def chosen_by_sum(step, start_id, end_id, max_length, beams):
    search = _Search()
    search.score = lambda total, tokens, end_id: total
    tokens, total = search.search(step, start_id, end_id, max_length, beams)
    return tokens, _mean(total, tokens)


@exercise.misconception("""
    The two results are in the other order: the tokens first, then the score.
""")
def score_first(step, start_id, end_id, max_length, beams):
    return decoding.beam_search(step, start_id, end_id, max_length, beams)[::-1]


@exercise.misconception("""
    Your tokens are a tensor. One sequence of its own length is a list here, which begins with `start_id`.
""")
def tensor_returned(step, start_id, end_id, max_length, beams):
    tokens, score = decoding.beam_search(step, start_id, end_id, max_length, beams)
    return torch.tensor(tokens), score


@exercise.misconception("""
    The start is missing in your tokens. The list begins with `start_id`.
""")
def start_left_out(step, start_id, end_id, max_length, beams):
    tokens, score = decoding.beam_search(step, start_id, end_id, max_length, beams)
    return tokens[1:], score


@exercise.misconception("""
    With more beams than continuations your search breaks off: `topk` cannot give more than there are. The first step
    has one beginning only.
""")
def more_than_there_are(step, start_id, end_id, max_length, beams):
    step(torch.tensor([[start_id]])).log_softmax(-1).flatten().topk(beams)
    return decoding.beam_search(step, start_id, end_id, max_length, beams)


@exercise.alternative
def by_lists(step, start_id, end_id, max_length, beams):
    return _Search().search(step, start_id, end_id, max_length, beams)


@exercise.alternative
def one_call_for_each_beginning(step, start_id, end_id, max_length, beams):
    alive, pool = [([start_id], 0.0)], []
    while alive and len(alive[0][0]) < max_length:
        grown = []
        for tokens, total in alive:
            log_probabilities = torch.log_softmax(step(torch.tensor([tokens]))[0], dim=-1)
            grown.extend(([*tokens, token], total + float(p)) for token, p in enumerate(log_probabilities))
        grown = heapq.nlargest(beams, grown, key=lambda pair: pair[1])
        pool.extend(pair for pair in grown if pair[0][-1] == end_id)
        alive = [pair for pair in grown if pair[0][-1] != end_id]
    best = max(pool + alive, key=lambda pair: pair[1] / (len(pair[0]) - 1))
    return best[0], best[1] / (len(best[0]) - 1)


@exercise.alternative
def in_tensors(step, start_id, end_id, max_length, beams):
    tokens, sums, pool = torch.tensor([[start_id]]), torch.zeros(1), []
    for _ in range(max_length - 1):
        logits = step(tokens)
        totals = (sums[:, None] + torch.nn.functional.log_softmax(logits, -1)).reshape(-1)
        best, where = totals.topk(min(beams, len(totals)))
        row = torch.div(where, logits.shape[1], rounding_mode="floor")
        tokens = torch.cat([tokens[row], (where % logits.shape[1])[:, None]], 1)
        ended = tokens[:, -1] == end_id
        pool += [
            (s.item() / (tokens.shape[1] - 1), t.tolist()) for s, t in zip(best[ended], tokens[ended], strict=True)
        ]
        tokens, sums = tokens[~ended], best[~ended]
        if not len(tokens):
            break
    pool += [(s.item() / (tokens.shape[1] - 1), t.tolist()) for s, t in zip(sums, tokens, strict=True)]
    score, best_tokens = max(pool)
    return best_tokens, torch.tensor(score)
