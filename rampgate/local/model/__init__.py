"""A local model: OpenAI's chat-completions call, answered by rule. A stand-in, not a language model.

For `rampgate dev`, `rampgate demo` and tests. Every answer says so: header `X-Stand-In`, model `… (stand-in)`,
`system_fingerprint`. The same request always gets the same answer. It can be told to be slow, wrong, rate-limited, down
or down half of the time (`behaviour`).
"""
