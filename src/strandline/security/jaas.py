"""`sasl.jaas.config`: one login module and its options, in the syntax of Java's login configurations.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="…";

Values have quotes, or are a word without any. No error repeats what the text has: passwords are in it.
"""

import re

from strandline.base.value import Value

MODULE = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?P<flag>required|requisite|sufficient|optional)\b", re.IGNORECASE)
PAIR = re.compile(
    r"\s*(?P<key>[^\s=;\"']+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s;\"']+))(?=[\s;]|$)"
)
END = re.compile(r"\s*;?\s*")
SHAPE = 'it is not of the form: LoginModule required username="…" password="…";'


class LoginModule(Value, frozen=True):
    name: str  # of the class, without its package
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, …)"

    __str__ = __repr__


def login_module(text: str) -> LoginModule:
    """Raises ValueError."""
    match = MODULE.match(text)
    if match is None:
        raise ValueError(SHAPE)
    name = match["module"].rpartition(".")[2]
    at, options = match.end(), dict[str, str]()
    while (pair := PAIR.match(text, at)) is not None:
        if pair["key"] in options:
            raise ValueError("it has an option twice")
        options[pair["key"]] = value_of(pair)
        at = pair.end()
    rest = END.match(text, at)
    assert rest is not None, "it matches anything"
    if rest.end() < len(text):
        if MODULE.match(text, rest.end()):
            raise ValueError("it has more than one login module")
        raise ValueError(SHAPE)
    return LoginModule(name, options)


def value_of(pair: re.Match[str]) -> str:
    if pair["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", pair["quoted"])
    return pair["single"] if pair["single"] is not None else pair["bare"]
