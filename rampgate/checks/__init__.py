"""Runs the checks of judges that `rampgate check` offers: what they read, ask and report."""
