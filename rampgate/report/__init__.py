"""What a report consists of, and the one emitter of each format."""
