"""Shaping a result for people, without a screen.

`views` picks among the shapes a value can be looked at in: `tree`, `table`, `text` (broken to a width by `wrap`) and
`markdown`; `find` searches them, `paths` names a place in them. `log` makes lines of what a tool prints, `advice`
says what to do about a failure, `export` writes the whole. `clean` makes untrusted text safe to show, `sizes` says
bytes and durations in words. `shorten` cuts a value that is too large to be passed on.
"""
