"""Declares the gates' ports, pools traces for them, and scores their samples."""
