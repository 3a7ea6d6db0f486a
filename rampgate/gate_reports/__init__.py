"""A gate's outcome in the forms that CI shows: text, annotations, JUnit, Markdown and a page (PC5 §5.5)."""
