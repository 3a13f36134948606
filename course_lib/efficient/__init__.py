"""Attention that does not fill the whole table of scores: windows, sparse patterns, tiles, features, hashing.

Four modules compute exactly what plain attention computes on the pairs that they look at (`flash`: all; `local`,
`block_sparse`, `lsh`: some); five change the question so that it costs less (`linear`, `performer`, `linformer`,
`clusters`, `summaries`). `sparse` states patterns of pairs as masks, which save nothing by themselves.
"""
