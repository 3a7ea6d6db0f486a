"""One agent per consumed topic: decode, handle, settle. Ports are defined here, implemented in streams."""
