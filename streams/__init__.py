"""The machinery under the agents: Kafka, state in Redis, Opik, feed, sweep, gates, alerts, replay."""
