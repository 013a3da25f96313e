"""Tables of real decisions: read, checked, and made into problems."""
