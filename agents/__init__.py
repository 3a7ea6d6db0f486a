"""Defines one agent per consumed topic (topic, codec, handler) and the ports that `streams` implements."""
