"""Agents and programs that others wrote, under the bounds, limits and journal of Handrail.

`gateway` stands between any client and its provider. It is imported only when it is used.
"""
