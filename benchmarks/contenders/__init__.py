"""The same job in other frameworks, each file a process of its own. They import nothing of Rampgate.

Settings come from the environment: BENCH_KAFKA, BENCH_TOPIC, BENCH_GROUP, BENCH_REDIS, BENCH_SINK.
"""
