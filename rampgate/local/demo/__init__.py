"""`rampgate demo`: a seeded day of traffic through everything, embedded, in well under a minute."""
