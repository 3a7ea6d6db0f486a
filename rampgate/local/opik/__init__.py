"""A local Opik over SQLite: the part of Opik's REST API that Rampgate uses. A stand-in, not the Opik product.

It is for `rampgate dev`, `rampgate demo` and tests. The official `opik` SDK works with it unmodified. It follows the
project's Opik contract, runtime facts included, and refuses everything else with 404 and a log line.
"""
