"""Example packs and scripts that `pegboard new --example` creates."""
