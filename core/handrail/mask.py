"""The mask that stands in text where the value of a secret was (rule J5)."""

from __future__ import annotations

MASK = "[masked]"
"""What a person, the journal and the model see instead of a known key. Text that holds it is never written to
a file: it would put the mask in the place of the secret."""
