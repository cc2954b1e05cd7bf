"""A pack that reveals its secret wherever it can."""

import base64
import sys

from pegboard.sdk import ToolFailed, call_tool, get_secret, hints, log, progress


def tell() -> object:
    """Return the secret, print it, log it."""
    secret = get_secret("TELLER_KEY") or ""
    print(f"printed {secret}")
    print(f"errs {secret}", file=sys.stderr)
    log(f"logged {secret}")
    progress(1, 2, f"at {secret}")
    return {"is": [secret], secret: 1, "as": base64.b64encode(f"user:{secret}".encode()).decode()}


def tell_bit_by_bit() -> None:
    """Print the secret in three parts, and a text that only starts like it; wait until each part was read."""
    secret = get_secret("TELLER_KEY") or ""
    for part in ("<" + secret[:7], secret[7:30], secret[30:] + ">", "sk_live_", "no"):
        sys.stdout.write(part)
        sys.stdout.flush()
        call_tool("teller.echo", value="")


def tell_at_length() -> list[str]:
    """Return the secret in a result that is too large to be shown."""
    return [*map(str, range(1000)), get_secret("TELLER_KEY") or ""] * 10


def fail(*, how: str) -> None:
    """Fail with the secret."""
    secret = get_secret("TELLER_KEY") or ""
    if how == "said":
        raise ToolFailed(f"No {secret}", secret, {"key": secret})
    raise LookupError(secret)


@hints(read_only=True)
def echo(*, value: str) -> object:
    """Return the argument and its length."""
    return [value, len(value)]
