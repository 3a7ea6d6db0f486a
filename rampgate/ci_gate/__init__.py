"""Runs a gate from CI and writes its reports."""
