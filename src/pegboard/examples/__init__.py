"""Examples that `pegboard new --example` hands out: packs and scripts like anybody's own."""
