"""The judgement: rules, judges, gates, calibration, statistics. Pure; no Kafka, Redis or clock."""
