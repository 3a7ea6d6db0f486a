"""The front door: settings, wiring, command line, embedded services, web console."""
