"""Proposes prompt forks for categories that underperform, and says which of them a person should see (PF-9 FR-9, §5.7).

Nothing here merges, and nothing changes but a prompt's text. Pure.
"""
