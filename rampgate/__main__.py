"""`python -m rampgate` is the command line."""

from rampgate.cli import main

main()
