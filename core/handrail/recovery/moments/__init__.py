"""When to ask again: moments and lengths of time, as servers and people write them (rules U1, U2)."""
