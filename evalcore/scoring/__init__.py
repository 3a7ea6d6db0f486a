"""Judges that run: items in, answers out, within limits (PC5 §5.4, §9.5, NFR-2, NFR-3).

Calling a judge's model is an edge: the model, the cache and the limits are handed in.
"""
