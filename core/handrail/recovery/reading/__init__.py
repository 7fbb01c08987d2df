"""What a failure says: its fields, words and names, taken apart (rules K1 to K4)."""
