"""Gates: from judges' answers over a sample to a verdict (PC5 §5.4, §5.5; contracts §3).

Pure; read in the order answers, aggregates, limits, decision, steps.
"""
