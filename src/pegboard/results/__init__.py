"""Presentation of results without an interface.

`views` selects the views that fit a value: `tree`, `table`, `text` (wrapped to a width by `wrap`) and `markdown`.
`find` searches them, and `paths` names a part of a value. `log` splits the output of a tool into lines, `advice`
suggests what to do about a failure, `export` saves complete results. `clean` makes untrusted text safe to show, `sizes`
formats bytes and durations. `shorten` truncates values that are too large to pass on.
"""
