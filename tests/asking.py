"""One HTTP client for all tests: each call by `httpx.get` makes a client, and an SSL context with it, of its own."""

from __future__ import annotations

import httpx

# Servers come and go at the same address from test to test: a connection serves one request.
HTTP = httpx.Client(timeout=15, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
