"""Kafka: Faust's transport in batches, our producer, offsets, topics."""
