"""How far annotators agree with one another: Krippendorff's alpha and what lowers it (PF-9 FR-14). Pure."""
