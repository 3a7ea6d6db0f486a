"""Keeps what must not be paid for twice: in an SQLite file, in Redis or in S3, each value sealed."""
