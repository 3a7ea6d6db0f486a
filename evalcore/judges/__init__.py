"""One judge: its prompt, the fence around a turn's text, the score it answers."""
