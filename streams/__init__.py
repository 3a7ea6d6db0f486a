"""The machinery under the agents: Kafka, Redis state, gateways, feed, replay."""
