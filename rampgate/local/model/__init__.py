"""A local model: OpenAI's chat-completions call, answered by rule. A stand-in, not a language model.

It is for `rampgate dev`, `rampgate demo` and tests. Every answer says so: header `X-Stand-In`, model `… (stand-in)`,
`system_fingerprint`. The same request always gets the same answer. `behaviour` makes it slow, wrong, rate-limited, or
unavailable for all requests or some.
"""
