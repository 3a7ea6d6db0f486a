"""Takes away what a suite's store holds and nobody needs any more."""
