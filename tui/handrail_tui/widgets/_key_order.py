"""The keys of a field for typing, obeyed in the order in which they were pressed."""

from __future__ import annotations

from textual import events
from textual.widget import Widget


async def obey(field: Widget, event: events.Key) -> None:
    """Do at once what a key that types nothing is bound to on `field` itself.

    Textual puts letters in at once but sends every other key up the tree first. Where keys come in a burst, in a busy
    moment or as a paste without brackets, letters would overtake the backspace or the line break before them.
    """
    if event.is_printable:
        return
    chain = field.screen._modal_binding_chain  # the keymap of the settings is applied in it
    node, bindings = chain[0]
    if node is not field:
        return
    for binding in bindings.key_to_bindings.get(event.key, ()):
        if not binding.priority and await field.app.run_action(binding.action, field):
            event.prevent_default()
            event.stop()
            return
