"""A local Opik: the part of Opik's REST API that Rampgate uses, over SQLite. A stand-in, not the Opik product.

For `rampgate dev`, `rampgate demo` and tests. The official `opik` SDK works against it unmodified. Its behaviour
follows the project's Opik contract, runtime facts included; what it doesn't serve it refuses with 404 and a log line.
"""
