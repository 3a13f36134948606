"""Attention that does not fill the whole table of scores: windows, sparse patterns, tiles, features, hashing.

Four modules compute exactly what plain attention computes on the pairs that they look at (`local`, `sparse`, `flash`,
`clusters`); five change the question so that it costs less (`linear`, `performer`, `linformer`, `lsh`, `summaries`).
"""
