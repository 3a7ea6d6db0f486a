"""Commands on the registry and on a running installation: each is a function of a context (`rampgate.command`)."""
