"""Public schema, typed tables and the row-by-row encoding.

Nothing here is fitted to records: each number that shapes an encoding is in the public schema. ``schema`` and
``layout`` need numpy and yaml only, so that code after the door never loads a table library.
"""
