"""Syntax that the sandbox runs differently from bash: it is refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.runtime import Runtime
from pegboard.scripts import OrchestratorTool

REFUSED = {
    "quotes within a default": ('echo "${x:-$(echo "a  b")}"', 1, 12, "${…}"),
    "quotes within a default without quotes": ("y=\"p  q\"; z=${x:-$(echo \"$y\")}", 1, 18, "${…}"),
    "quotes within single quotes within a default": ("echo \"${x:-$(echo '{\"b\": 1}')}\"", 1, 12, "${…}"),
    "quotes within a pattern": ('x=abc\necho "${x#$(echo "a")}"', 2, 11, "${…}"),
    "quotes within nested defaults": ('echo "${x:-${y:-$(echo "a  b")}}"', 1, 17, "${…}"),
    "quotes after another expansion": ('echo "${x:-${y}$(echo "a  b")}"', 1, 16, "${…}"),
    "an array within a default": ('echo ${x:-$(b=(1 2 3); echo "${b[2]}")}', 1, 11, "${…}"),
    "quotes within an index": ('declare -A m; echo "${m[$(echo "a  b")]}"', 1, 25, "${…}"),
    "a default within a here-document": ('cat <<END\nhi\n${x:-$(echo "a  b")}\nEND', 3, 6, "${…}"),
    "backticks within a default": ('echo "${x:-`echo a`}"', 1, 12, "backticks within ${…}"),
    "backticks within an assignment": ('f() {\n  local v="x `echo a`"\n}', 2, 14, "backticks within the double quotes"),
    "quotes within arithmetic": ('(( n = $(echo "a  b" | wc -c) ))', 1, 8, "((…))"),
    "an array within arithmetic": ('(( n = $(b=("a  b" c); echo "${#b[@]}") ))', 1, 8, "((…))"),
    "JSON within arithmetic": ("if (( $(echo '{\"a\":1}' | jq .a) == 1 )); then echo y; fi", 1, 7, "((…))"),
    "quotes within arithmetic after parentheses": ('(( n = (1) + $(echo "a  b" | wc -c) ))', 1, 14, "((…))"),
    "quotes within arithmetic after an empty case": ('(( n = $(case a in esac; echo "a  b" | wc -c) ))', 1, 8, "((…))"),
    "quotes within the head of a loop": ('for ((i=$(echo "a  b" | wc -c); i<7; i++)); do echo $i; done', 1, 9, "((…))"),
    "backslashes within a pattern": ('x=a; echo "${x//\\"/\\\\\\"}"', 1, 20, "a backslash"),
    "a quote within a pattern": ("x=a; echo \"${x//'\"'/}\"", 1, 17, "a double quote"),
    "the output of a group": ("{ echo a; } > >(sort -r)", 1, 13, "compound command"),
    "the output of a loop": ("for i in 1 2; do\n  echo $i\ndone 2>/dev/null > >(cat)", 3, 18, "compound command"),
    "the output of all that follows": ("exec > >(tee log)\necho hi", 1, 6, "exec"),
    "the time as a variable": ("start=$EPOCHSECONDS", 1, 7, "EPOCHSECONDS, which is unset"),
    "a nested script": ("echo a\neval 'echo \"${x:-$(echo \"b\")}\"'", 2, 7, "${…}"),
    "lines above a syntax error": ('echo a\n(( n = $(echo "a  b" | wc -c) ))\nif', 2, 8, "((…))"),
}  # fmt: skip

BEFORE = {
    "a comment": "echo a # it's (( \"\necho ",
    "no comment": "echo a#' (( '",
    "a here-document after a comment": "cat <<END # )\n' $(echo \"c\") ((\nEND\necho ",
    "a quoted here-document": "cat <<'END'\n' $( ((\nEND\necho ",
    "an indented here-document": "cat <<-END\n\t' ((\n\tEND\necho ",
    "a here-document and a backslash": "cat <<END\n\\`\nEND\necho ",
    "two here-documents": "cat <<A; cat <<'B'\n'\nA\n\"\nB\necho ",
    "a here-string": "cat <<<a; cat <<<'(('; cat <<<",
    "a case": "case a in b) ;; (a | c) echo b;; *) echo ')' ;; esac; echo ",
    "a case without a last sign": "case a in a) esac; echo ",
    "the word of a case": "echo case; case in in in) echo esac ;& b) ;; esac; echo ",
    "a case in a substitution": "echo $(case a in a) echo c;; esac)'b'",
    "a case in a condition": "if case a in a) true;; esac then echo b; fi; echo ",
    "quoted patterns of a case": "case a in \"b)\") echo '\"';; esac; echo ",
    "ANSI quotes": "echo $'it\\'s \"'",
    "escaped quotes": "echo \\\"\\'\\\\",
    "a backslash at the end of quotes": "echo \"\\\\\"'\"'",
    "escaped quotes in quotes": 'echo "\\"\\\\"',
    "single quotes in quotes": 'echo "it\'s"',
    "two kinds of quotes": "echo 'a\"'\"'\"",
    "arithmetic": "(( (y = 2) > 1 && y )); echo ",
    "arithmetic with quotes": '(( "1" + \\2 )); echo ',
    "arithmetic expansion": "echo $(( (1 + 2) * 3 ))'b'",
    "arithmetic with an expansion": "(( ${y:-1} + $(echo 1) )); echo ",
    "subshells": "((echo a); (echo b)); echo ",
    "a subshell": "(echo a; (echo 'b)')); echo ",
    "backticks": "echo `echo 'a\"'`'b'",
    "escaped backticks": "echo `echo \\`echo b\\``",
    "an expansion": "echo ${#y}${y//\\}/}${y:-'}'}'b'",
    "an expansion in quotes": "echo \"${y:-it's}\"\"${y#'}'}\"",
    "an expansion with quotes": 'echo "${y:-"}"}"',
    "process substitution": "cat <(echo ')') ",
    "a substitution": "v=$(echo ')' # )\n); echo ",
    "an array": "v=(a 'b)'); echo ",
}  # fmt: skip

ACCEPTED = {
    "a comment": ("# it's \"${x:-$(echo \"a\")}\" and { a; } > >(cat)\necho hi", "hi\n"),
    "single quotes": ("echo '${x:-$(echo \"a\")} { a; } > >(cat)'", '${x:-$(echo "a")} { a; } > >(cat)\n'),
    "the name of a variable": ("echo '$EPOCHSECONDS' | awk '{ print $1 }' # $EPOCHSECONDS", "$EPOCHSECONDS\n"),
    "a quoted here-document": ("cat <<'END'\n(( $(echo \"a\") ))\nEND", '(( $(echo "a") ))\n'),
    "quotes within arithmetic expansion": ('echo $(( $(echo "a  b" | wc -c) ))', "5\n"),
    "quotes within substitution": ('v="$(echo "$(echo "a  b")")"; echo "${v:-"$v"}"', "a  b\n"),
    "single quotes within a default": ("echo \"${x:-$(echo 'a  b')}\"", "a  b\n"),
    "harmless quotes within arithmetic": ('(( n = $(printf "12") + 1 )); echo $n', "13\n"),
    "subshells that look like arithmetic": ('((echo "a"); echo "$(echo "b  c")")', "a\nb  c\n"),
    "the output of a command": ("echo b > >(tr b c)", "c\n"),
    "the output of a pipe": ("{ echo a; echo b; } | tee >(wc -l >n) | sort -r; cat n", "b\na\n2\n"),
    "backslashes without quotes": ('x=\'a"b\'; y=${x//\\"/\\\\\\"}; echo "$y"', 'a\\"b\n'),
    "backticks in quotes": ('echo "`echo a`"', "a\n"),
    "a quote in another pattern": ("x='\"a'; echo \"${x#'\"'}\"", "a\n"),
    "a quote in a case": ('v=$(case "a" in (a) echo "b  c";; *")"*) ;; esac); echo "$v"', "b  c\n"),
}  # fmt: skip


@pytest.fixture
def tool(plain: Callable[..., OrchestratorTool]) -> OrchestratorTool:
    return plain(get=lambda args, stdin: "")


@pytest.mark.parametrize(("script", "line", "column", "reason"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_script_that_would_run_wrongly_is_refused_with_line_and_cause(
    tool: OrchestratorTool, script: str, line: int, column: int, reason: str
) -> None:
    result = await tool.execute(script)
    assert (result.stdout, result.exit_code) == ("", 2)
    assert f"unsupported syntax at line {line}, column {column}: " in result.stderr
    assert reason in result.stderr


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
def test_unsupported_syntax_is_found_after_any_other_syntax(tool: OrchestratorTool, before: str) -> None:
    assert tool.analyze(f'{before}"b  c"').error is None
    error = tool.analyze(f'{before}"${{x:-$(echo "b  c")}}"').error
    line, column = before.count("\n") + 1, len(f'{before}"${{x:-') - before.rfind("\n")
    assert error is not None
    assert error.startswith(f"unsupported syntax at line {line}, column {column}: ")


@pytest.mark.parametrize("script", ['shop.buy tea; echo "${x:-$(echo "a")}"', "{ shop.buy tea; } > >(cat)"])
def test_a_script_that_is_refused_is_an_error_before_it_runs(shop: Runtime, script: str) -> None:
    found = shop.scripts.orchestrator().analyze(script)
    assert found.error is not None
    assert found.error.startswith("unsupported syntax at line 1, column ")
    assert [call.tool for call in found.calls] == ["shop.buy"]
    assert not any("will still run" in sentence for sentence in found.unknown)


@pytest.mark.parametrize(("script", "printed"), ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_similar_text_that_runs_as_in_bash_is_accepted(tool: OrchestratorTool, script: str, printed: str) -> None:
    result = await tool.execute(script)
    assert (result.stdout, result.stderr, result.exit_code) == (printed, "", 0)


async def test_thousands_of_parentheses_are_read_quickly_enough(tool: OrchestratorTool) -> None:
    result = await tool.execute("((" * 5_000 + 'echo "${x:-`a`}"')
    assert (result.stdout, result.exit_code) != ("", 0)


GUIDE = (Path(__file__).parents[2] / "src" / "pegboard" / "guide" / "scripts.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.+`) \| (`.+`.*) \|$", GUIDE.partition("| refused |")[2].partition("\n\n")[0], re.MULTILINE)

DIFFERENCES = {
    "type": ("type -t get; hash get 2>/dev/null; echo $?; which get; command -v get", "1\nget\n"),
    "jobs without stderr": ("{ for i in {1..70}; do sleep 0.1 & done; wait; } 2>/dev/null; echo on", "on\n"),
    "08": ("x=08; echo $((x + 1))", "9\n"),
    "an ampersand": ("x=cat; echo ${x/a/[&]}", "c[&]t\n"),
    "braces": ("x=1; echo ${x:-{}}", "1\n"),
    "-nt": ("touch a; [[ a -nt b ]] || echo no; [ a -nt b ] && echo yes", "no\nyes\n"),
    "-nt of relative paths": (
        "touch -d 2020-01-01 b; touch a; [[ a -nt b ]] || echo no; [[ b -ot a ]] || echo no; [ a -nt b ] && echo yes",
        "no\nno\nyes\n",
    ),
    "-nt of absolute paths": ("touch /tmp/a; [[ /tmp/a -nt /tmp/b ]] && echo yes", "yes\n"),
    "set -u": (
        'set -u; a=(1); declare -A m=([x]=1); echo "${a[5]}${m[y]}-"; (echo "$none") 2>/dev/null || echo error',
        "-\nerror\n",
    ),
    "variables": ('echo "$BASH_COMMAND$BASH_LINENO$BASH_SOURCE$GROUPS$DIRSTACK-"; id -un; id -u', "-\nsandbox\n1000\n"),
    "umask": ("umask 077; touch a; stat -c %a a", "644\n"),
    "cut": ("echo é | cut -b1", "é\n"),
    "jq": ("echo 1.0 | jq .", "1.0\n"),
    "jq of exponents": ("echo '[1e3, 1.10]' | jq -c .", "[1000.0,1.1]\n"),
    "-ef": (
        "touch a; ln -s a b; [ a -ef b ] || echo no; [[ a -ef b ]] || echo no; [ a -ef a ] && echo yes",
        "no\nno\nyes\n",
    ),
    "eval and sh": (
        "x=$(eval 'seq 300000'); echo ${#x}; sh -c 'seq 300000' > a; wc -c <a; sh -c 'seq 300000' | wc -c",
        "1048576\n1048576\n1988895\n",
    ),
    "awk": ("awk 'BEGIN { print 2 ^ 53 }'", "9007199254740992\n"),
}


def test_the_syntax_that_the_guide_lists_is_refused_and_what_to_write_instead_is_not(tool: OrchestratorTool) -> None:
    assert len(ROWS) == 5
    for refused, instead in ROWS:
        for cell, is_refused in ((refused, True), (instead, False)):
            for _, code in re.findall(r"(?<!`)(``?)(?!`) ?(.+?)\1(?!`)", cell.replace("\\|", "|")):
                assert (tool.analyze(code).error is not None) == is_refused, code


@pytest.mark.parametrize(("script", "printed"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
async def test_the_differences_from_bash_that_the_guide_lists_exist(
    tool: OrchestratorTool, script: str, printed: str
) -> None:
    assert (await tool.execute(script)).stdout == printed
