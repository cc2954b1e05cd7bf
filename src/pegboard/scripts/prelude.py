"""Functions that are defined before a script runs, where a command of bashkit must behave differently."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

JOBS = "_pegboard_jobs"
JOB = "_pegboard_job"
ROUNDS = "_pegboard_rounds"
ROUND = "_pegboard_round"
TRAP = "_pegboard_trap"
HEAD = "_pegboard_head"
ERRORS = "_pegboard_errors"
IS_LONG_SEQ = "_pegboard_is_long_seq"
LONG_SEQ = "_pegboard_long_seq"
_JOB_FUNCTIONS = f"""
xargs() {{
    case " ${{*/#/ }}" in
        *" -P"*|*" -"[0rtx]P*|*" -"[0rtx][0rtx]P*|*" --max-procs"*) {ROUNDS} xargs "$@" ;;
        *)
            local __failed=0 __code=0 __words=()
            eval "$({JOBS} plain "$@" </dev/null)"
            command xargs "${{__words[@]}}" || __code=$?
            [[ $__failed == 0 ]] || __code=$__failed
            return "$__code" ;;
    esac
}}
{JOB}() {{
    [[ $__failed == 12[467] ]] && return
    "$@" </dev/null || {JOB}_failed "$?" "$1"
}}
{JOB}_verbose() {{
    [[ $__failed == 12[467] ]] || echo "$*" >&2
    {JOB} "$@"
}}
{JOB}_failed() {{
    case $1 in
        126) __failed=126 ;;
        127) if command -v "$2" >/dev/null; then __failed=123; else __failed=127; fi ;;
        255) __failed=124; echo "xargs: $2: exited with status 255; aborting" >&2 ;;
        *) __failed=123 ;;
    esac
}}
parallel() {{ {ROUNDS} parallel "$@"; }}
{ROUNDS}() {{
    local __failed=0 __round __rounds=()
    eval "$({JOBS} "$@")"
    for __round in "${{__rounds[@]}}"; do
        eval "{ROUND}() {{
$__round
}}"
        {ROUND} </dev/null || return
    done
    return "$__failed"
}}
"""
_TRAPS = f"""
trap() {{
    local IFS=" "
    case "$#,$1" in
        [01],* | *,-*) {TRAP} unset "$BASH_SUBSHELL" "$@"; command trap "$@"; return ;;
    esac
    case " $* " in
        *" EXIT "*|*" 0 "*)
            {TRAP} set "$BASH_SUBSHELL" "$-" "$1"
            command trap "$1
{TRAP} end" "${{@:2}}" ;;
        *) command trap "$@" ;;
    esac
}}
exit() {{
    local code=${{1-$?}}
    {TRAP} exit "$BASH_SUBSHELL"
    command exit "$code"
}}
"""
"""Functions for scripts with an `EXIT` trap: they record whether the trap was completed."""
_HEADS = f"""
head() {{
    local IFS=" "
    case " $* " in
        *" /dev/zero "*|*" /dev/urandom "*|*" /dev/random "*) {HEAD} "$@" ;;
        *) command head "$@" ;;
    esac
}}
"""
_SEQS = f"""
seq() {{
    if {IS_LONG_SEQ} "$@"; then {LONG_SEQ} "$@"; else command seq "$@"; fi
}}
"""
_EXPR = """
expr() {
    case "$#,$1" in
        [0-3],* | 4,substr) command expr "$@" ;;
        *) echo 'expr: only one operator is supported; use $((…)) for arithmetic' >&2; return 2 ;;
    esac
}
"""
"""Function for `expr`, which ignores what follows the first operation."""
_LIMITED = ("awk", "jq", "sed", "yq")
"""Programs that report a limit of their own only on stderr."""
_LIMITS = f"""
NAME() {{
    local _errors="/tmp/.NAME-$RANDOM$RANDOM$RANDOM" _code=0
    command NAME "$@" 2>"$_errors" || _code=$?
    if [[ -s $_errors ]]; then {ERRORS} <"$_errors"; fi
    command rm -f "$_errors"
    return "$_code"
}}
"""
"""Function for a program whose stderr may be discarded: it looks for a limit in it first."""
_DISCARDS_ERRORS = re.compile(r"2>|&>")
_SETS_TRAP = re.compile(r"\btrap\b[^\n]*(?:\bEXIT|\b0)\b|\btrap\b.*\bEXIT\b", re.DOTALL)


def prelude(script: str, names: Collection[str]) -> str:
    """Return the definitions that a script needs.

    Args:
        script: The script.
        names: Names of tools, which override programs.
    """
    functions = _JOB_FUNCTIONS
    if _SETS_TRAP.search(script):
        functions += _TRAPS
    if "/dev/" in script:
        functions += _HEADS
    if "seq" in script and "seq" not in names:
        functions += _SEQS
    if "expr" in script and "expr" not in names:
        functions += _EXPR
    if _DISCARDS_ERRORS.search(script):
        for name in _LIMITED:
            if name in script and name not in names:
                functions += _LIMITS.replace("NAME", name)
    return functions
