"""Gives commands of specs the spec's file. It is read in `rampgate.suite`, whose commands take a spec, too."""

from rampgate.suite.spec_files import NAME, RUBRICS, LoadedSpec, open_spec, reading_of, suite_name, templates

__all__ = ["NAME", "RUBRICS", "LoadedSpec", "open_spec", "reading_of", "suite_name", "templates"]
