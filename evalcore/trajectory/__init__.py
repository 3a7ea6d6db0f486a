"""What an agent did to come to its answer, in one form, whichever instrumentation recorded it."""
