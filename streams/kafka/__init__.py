"""Kafka: Faust's transport in batches, our producer, consumers beside the join, offsets, topics."""
