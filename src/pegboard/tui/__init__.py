"""The terminal interface: an app with pages, pages with panes, and dialogs over them.

A page owns its state and passes it down to its panes, which don't know each other: they post messages (`messages`).
`app` is the app, `pages` switches and opens pages, `commands` declares what a key, the palette and the help run.

- `tools`, `chat`, `script`, `health`, `activity`: the pages, each with the dialogs that only it opens.
- `dialogs`: those of more than one page; `form`, `result`: panes of more than one page; `shell`: what surrounds pages.
- `widgets`: what pages and dialogs consist of; `state`: what every page shows, such as the tools that were found.
"""
