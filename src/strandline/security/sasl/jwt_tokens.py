"""Tokens of OAUTHBEARER: JSON Web Tokens (RFC 7519), signed by one of the keys of a JSON Web Key Set (RFC 7517).

Signatures are checked by PyJWT, which is imported only where OAUTHBEARER is enabled. Which algorithm may verify what
is decided here, by the kind of the key and never by what the token says alone: neither `none` nor an HMAC under a
public key is ever a signature (RFC 8725, sections 2.1 and 3.1).
"""

from collections.abc import Mapping
from typing import Any, Protocol

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.security.sasl.oauthbearer import Token

# Algorithms by the kind of key: (kty, crv).
OF_KIND: dict[tuple[str, str], tuple[str, ...]] = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
ALGORITHMS = tuple(name for names in OF_KIND.values() for name in names)
# PyJWT is not asked about the claims: it would read the clock, and know nothing of other names of claims.
SIGNATURE_ALONE: Any = {
    "verify_signature": True,
    "verify_aud": False,
    "verify_exp": False,
    "verify_iat": False,
    "verify_iss": False,
    "verify_jti": False,
    "verify_nbf": False,
    "verify_sub": False,
}
RSA_BITS_MIN = 2048  # RFC 7518, section 3.3
NAME_MAX = 1024  # letters of a user's name
SECONDS_MAX = 1 << 40  # the year 36,812


class Key(Value, frozen=True):
    id: str | None
    key: Any  # a public key
    algorithms: tuple[str, ...]

    def __post_init__(self) -> None:
        assert self.algorithms and set(self.algorithms) <= set(ALGORITHMS)


class Keys(Protocol):
    """Where the keys are; they may change."""

    def all(self) -> tuple[Key, ...]: ...

    def misses(self, key_id: str) -> None:
        """A token names a key that is not there: the signer may have a new one."""
        ...


class TokenRules(Value, frozen=True):
    """What a token must say, beyond a signature: `sasl.oauthbearer.*`."""

    audiences: tuple[str, ...] = ()  # one of them; empty: whatever it says
    issuer: str = ""  # empty: whatever it says
    name_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: int = 30


def keys_in(document: Any) -> tuple[Key, ...]:
    """The keys of a key set that can verify signatures; others in it are passed over. Raises ValueError if it is not
    a key set."""
    rows = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        raise ValueError('it is not a JSON Web Key Set: an object with a list "keys"')
    return tuple(key for row in rows if isinstance(row, dict) and (key := key_in(row)) is not None)


def key_in(row: Mapping[str, Any]) -> Key | None:
    """None: it is of no use for signatures here."""
    algorithms = OF_KIND.get((str(row.get("kty")), str(row.get("crv", ""))), ())
    if "alg" in row:
        algorithms = tuple(name for name in algorithms if name == row["alg"])
    if not algorithms or row.get("use", "sig") != "sig":
        return None
    id_ = row.get("kid")
    try:
        key = jwt.PyJWK(dict(row), algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if "d" in row:  # a private key, of which only the public part is needed
        key = key.public_key()
    if isinstance(key, RSAPublicKey) and key.key_size < RSA_BITS_MIN:
        return None
    return Key(id_ if isinstance(id_, str) else None, key, algorithms)


class JwtTokens:
    """Tokens that one of `keys` has signed, and that say what `rules` want."""

    def __init__(self, keys: Keys, rules: TokenRules) -> None:
        self.keys = keys
        self.rules = rules

    def check(self, token: str, now: Instant) -> Token:
        """Raises ValueError."""
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise ValueError("its token is not a JSON Web Token") from error
        key = self.key_for(header.get("alg"), header.get("kid"))
        try:
            claims = jwt.decode(token, key.key, algorithms=[header["alg"]], options=SIGNATURE_ALONE)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise ValueError("the signature of its token is wrong") from error
        return self.checked(claims, now)

    def key_for(self, algorithm: Any, key_id: Any) -> Key:
        if algorithm not in ALGORITHMS:
            raise ValueError("its token is not signed by a public key's algorithm")
        fitting = [key for key in self.keys.all() if algorithm in key.algorithms]
        if key_id is None:
            if len(fitting) != 1:
                raise ValueError(f"its token names no key, and {len(fitting)} keys could be meant")
            return fitting[0]
        for key in fitting:
            if key.id == key_id:
                return key
        if isinstance(key_id, str):
            self.keys.misses(key_id)
        raise ValueError("its token is signed by a key that is not in the key set")

    def checked(self, claims: Mapping[str, Any], now: Instant) -> Token:
        """The signature is right: what does it say?"""
        rules, now_s = self.rules, now / 1000
        end, begin = seconds(claims, "exp"), seconds(claims, "nbf")
        if end is None:
            raise ValueError("its token has no time of expiry")
        if seconds(claims, "iat") is None:
            raise ValueError("its token has no time of issue")
        if now_s >= end + rules.skew_s:
            raise ValueError(f"its token has expired {now_s - end:.0f} s ago")
        if begin is not None and now_s + rules.skew_s < begin:
            raise ValueError(f"its token is not valid before {begin - now_s:.0f} s from now")
        if rules.issuer and claims.get("iss") != rules.issuer:
            raise ValueError("its token has another issuer")
        if rules.audiences and not set(rules.audiences) & set(texts(claims, "aud")):
            raise ValueError("its token is for another audience")
        texts(claims, rules.scope_claim)
        name = claims.get(rules.name_claim)
        if not isinstance(name, str) or not name.strip() or len(name) > NAME_MAX:
            raise ValueError(f"its token has no name of a user in the claim {rules.name_claim}")
        until = end if end > now_s else end + rules.skew_s
        return Token(name, Instant(int(until * 1000)))


def seconds(claims: Mapping[str, Any], name: str) -> float | None:
    """None: there is none."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < SECONDS_MAX:
        raise ValueError(f"the claim {name} of its token is not a time")
    return value


def texts(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Of a claim that is one text or a list of them."""
    value = claims.get(name, ())
    found = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else (None,)
    if not all(isinstance(text, str) for text in found):
        raise ValueError(f"the claim {name} of its token is neither a text nor a list of texts")
    return found
