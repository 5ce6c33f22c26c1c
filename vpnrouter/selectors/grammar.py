"""The grammar of selectors, and the parser that is made of it at the first use.

The parser is LALR(1): a table and a stack in memory, so that no input can make it recurse. It joins
what the grammar allows; what may stand on which side of an operator is the business of `build`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.numbers import read_number

if TYPE_CHECKING:
    from lark import Lark, Token

KEYWORDS: Final = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"}
)
"""Words that are no names, in any case of letters."""

GRAMMAR: Final = r"""
selector: disjunction

?disjunction: conjunction (OR conjunction)*
?conjunction: negation (AND negation)*
?negation: predicate
    | NOT negation -> negation
?predicate: sum
    | sum COMPARISON sum -> comparison
    | sum [NOT] BETWEEN sum AND sum -> between
    | sum [NOT] IN "(" STRING ("," STRING)* ")" -> membership
    | sum [NOT] LIKE STRING [ESCAPE STRING] -> like
    | sum IS [NOT] NULL -> absence
?sum: product (ADD product)*
?product: sign (MULTIPLY sign)*
?sign: operand
    | ADD sign -> signed
?operand: NAME -> name
    | QUOTED_NAME -> name
    | STRING -> string
    | NUMBER -> number
    | TRUE -> true
    | FALSE -> false
    | "(" disjunction ")" -> group

%declare AND BETWEEN ESCAPE FALSE IN IS LIKE NOT NULL OR TRUE

COMPARISON: /<>|<=|>=|[<>=]/
ADD: /[+-]/
MULTIPLY: /[*\/]/
NAME: /(?:[^\W\d]|\$)[\w$]*/
QUOTED_NAME: /"[^"]*(?:""[^"]*)*"(?!")/
STRING: /'[^']*(?:''[^']*)*'(?!')/
NUMBER: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/

%ignore /[ \t\f\r\n]+/
"""


@cache
def parser() -> Lark:
    """The parser, made once. Its import and its tables take some 0.1 s, so they wait for a selector."""
    from lark import Lark

    return Lark(
        GRAMMAR,
        parser="lalr",
        # The contextual lexer would take a keyword for a name wherever no keyword is due.
        lexer="basic",
        start="selector",
        propagate_positions=True,
        maybe_placeholders=True,
        lexer_callbacks={"NAME": _word, "NUMBER": _number},
    )


def _word(token: Token) -> Token:
    """A keyword, or the name as it is. Beyond ASCII, upper case makes an S of other letters."""
    if token.isascii() and token.upper() in KEYWORDS:
        return token.update(type=token.upper())
    return token


def _number(token: Token) -> Token:
    """The number, once it is sure that it is one and means what it says."""
    at = (token.start_pos or 0) + 1
    if len(token) > SELECTOR_NUMBER_LENGTH:
        raise SelectorError(
            f"expected a number of at most {SELECTOR_NUMBER_LENGTH} characters, "
            f"not of {len(token)}",
            at,
        )
    if token.isdecimal() and token.startswith("0") and len(token) > 1:
        # Jakarta Messaging takes Java's literals, where 010 is eight.
        raise SelectorError("expected a number without leading zeros", at)
    if read_number(token) is None:
        raise SelectorError("expected a number that a double can hold", at)
    return token
