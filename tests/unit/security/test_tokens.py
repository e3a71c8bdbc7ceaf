"""Tokens of OAUTHBEARER, signed with real keys: what they must say, who must have signed them, and how."""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.rows import each

from strandline.base.time import Instant
from strandline.security.sasl.jwt_tokens import JwtTokens, Key, TokenRules, keys_in
from strandline.security.sasl.oauthbearer import Token

NOW_S = 1_800_000_000
NOW = Instant(NOW_S * 1000)
RSA = rsa.generate_private_key(65537, 2048)
OTHER_RSA = rsa.generate_private_key(65537, 2048)
SMALL_RSA = rsa.generate_private_key(65537, 1024)
P256, P384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
CLAIMS = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S, "iss": "https://issuer", "aud": ["kafka", "x"]}


def public(private: Any, kid: str | None, **further: Any) -> dict[str, Any]:
    kind = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    (algorithm,) = [found for cls, found in kind.items() if isinstance(private, cls)]
    row = dict(json.loads(algorithm.to_jwk(private.public_key())))  # type: ignore[attr-defined]
    row.pop("key_ops", None)
    return row | ({"kid": kid} if kid is not None else {}) | further


DOCUMENT = {"keys": [public(RSA, "rsa"), public(P256, "p256"), public(P384, "p384"), public(ED, "ed")]}


class Shelf:
    def __init__(self, keys: Sequence[Key]) -> None:
        self.keys = tuple(keys)
        self.missed: list[str] = []

    def all(self) -> tuple[Key, ...]:
        return self.keys

    def misses(self, key_id: str) -> None:
        self.missed.append(key_id)


def tokens(rules: TokenRules | None = None, document: Any = DOCUMENT) -> JwtTokens:
    return JwtTokens(Shelf(keys_in(document)), rules or TokenRules())


def signed(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "rsa", **changes: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    return jwt.encode(claims, key, algorithm, {"kid": kid} if kid is not None else {})


def why(token: str, checked: JwtTokens | None = None) -> str:
    with pytest.raises(ValueError) as caught:
        (checked or tokens()).check(token, NOW)
    assert token not in str(caught.value)
    return str(caught.value)


def part(content: Any) -> str:
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@each(
    ("key", "algorithm", "kid"),
    [
        (RSA, "RS256", "rsa"),
        (RSA, "RS512", "rsa"),
        (RSA, "PS384", "rsa"),
        (P256, "ES256", "p256"),
        (P384, "ES384", "p384"),
        (ED, "EdDSA", "ed"),
        (P256, "ES256", None),  # one key could be meant
    ],
)
def test_a_token_that_one_of_the_keys_has_signed(key: Any, algorithm: str, kid: str | None) -> None:
    assert tokens().check(signed(key, algorithm, kid), NOW) == Token("alice", Instant((NOW_S + 60) * 1000))


def test_another_key_of_the_same_kind_signs_nothing() -> None:
    assert why(signed(OTHER_RSA)) == "the signature of its token is wrong"
    header, claims, signature = signed().split(".")
    assert why(f"{header}.{part(CLAIMS | {'sub': 'root'})}.{signature}") == "the signature of its token is wrong"
    assert why(f"{header}.{claims}.") == "the signature of its token is wrong"


def test_a_key_that_is_not_there_is_looked_for() -> None:
    checked = tokens()
    assert "not in the key set" in why(signed(OTHER_RSA, kid="new"), checked)
    assert checked.keys.missed == ["new"]  # type: ignore[attr-defined]
    assert "not in the key set" in why(signed(RSA, kid="p256"), checked), "a key of another kind"


def test_a_token_without_a_key_id_is_not_tried_with_every_key() -> None:
    two = {"keys": [public(RSA, "a"), public(OTHER_RSA, "b")]}
    assert why(signed(kid=None), tokens(document=two)) == "its token names no key, and 2 keys could be meant"


def test_no_signature_and_one_under_a_public_key_are_none() -> None:
    """RFC 8725, section 2.1."""
    spki = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for name in ("none", "None", "HS256", "HS512", "", None, 5, "ES256K", "RS256 "):
        for kid in ({"kid": "rsa"}, {}):
            said = f"{part({'alg': name, 'typ': 'JWT'} | kid)}.{part(CLAIMS)}"
            made = part(hmac.digest(spki, said.encode(), "sha512" if name == "HS512" else hashlib.sha256))
            for signature in ("", made):
                assert "not signed by a public key's algorithm" in why(f"{said}.{signature}")


def test_a_symmetric_key_in_the_key_set_is_no_key() -> None:
    secret = b"a symmetric key of 32 bytes.....".ljust(32)
    document = {"keys": [{"kty": "oct", "kid": "rsa", "k": part(secret)}]}
    assert keys_in(document) == ()
    assert "not signed by a public" in why(signed(secret, "HS256"), tokens(document=document))


def test_a_key_serves_the_algorithms_of_its_kind_and_of_its_own_choice() -> None:
    document = {"keys": [public(RSA, "rsa", alg="PS256")]}
    assert tokens(document=document).check(signed(RSA, "PS256"), NOW).name == "alice"
    assert "not in the key set" in why(signed(RSA, "RS256"), tokens(document=document))


@each(
    "row",
    [
        public(RSA, "rsa", use="enc"),
        public(RSA, "rsa", alg="RSA-OAEP"),
        public(RSA, "rsa", n="!"),
        public(SMALL_RSA, "rsa"),
        {"kty": "RSA"},
        {"kty": ["RSA"]},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {},
        "rsa",
    ],
)
def test_a_key_that_cannot_verify_signatures_is_passed_over(row: Any) -> None:
    assert [key.id for key in keys_in({"keys": [row, public(P256, "p256")]})] == ["p256"]


def test_of_a_private_key_the_public_part_is_used() -> None:
    row = dict(json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA)))  # type: ignore[arg-type]
    row.pop("key_ops")
    (key,) = keys_in({"keys": [row | {"kid": "rsa"}]})
    assert isinstance(key.key, rsa.RSAPublicKey)


@each("document", [None, [], {}, {"keys": {}}, "x"])
def test_what_is_no_key_set_is_said(document: Any) -> None:
    with pytest.raises(ValueError, match="not a JSON Web Key Set"):
        keys_in(document)


@each(
    ("changes", "problem"),
    [
        ({"exp": NOW_S - 30}, "has expired 30 s ago"),
        ({"exp": None}, "no time of expiry"),
        ({"exp": "soon"}, "the claim exp of its token is not a time"),
        ({"exp": True}, "the claim exp"),
        ({"exp": 1e300}, "the claim exp"),
        ({"exp": -1}, "the claim exp"),
        ({"iat": None}, "no time of issue"),
        ({"nbf": NOW_S + 31}, "is not valid before 31 s from now"),
        ({"iss": "https://issuer/"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": ["other", 5]}, "neither a text nor a list"),
        ({"aud": {"kafka": 1}}, "neither a text nor a list"),
        ({"scope": 5}, "the claim scope"),
        ({"sub": None}, "no name of a user in the claim sub"),
        ({"sub": " "}, "no name of a user"),
        ({"sub": 5}, "no name of a user"),
        ({"sub": "x" * 1025}, "no name of a user"),
    ],
)
def test_what_a_token_must_say(changes: dict[str, Any], problem: str) -> None:
    rules = TokenRules(("kafka", "other-kafka"), "https://issuer")
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    token = jwt.api_jws.encode(json.dumps(claims).encode(), RSA, "RS256", {"kid": "rsa"})
    assert problem in why(token, tokens(rules))


def test_what_a_token_may_say() -> None:
    rules = TokenRules(("kafka",), "https://issuer", name_claim="client", scope_claim="scp")
    fine = signed(client="carol", sub=None, scp=["a", "b"], aud="kafka", nbf=NOW_S + 30)
    assert tokens(rules).check(fine, NOW).name == "carol"
    anything = tokens().check(signed(aud=None, iss=None), NOW)
    assert anything.name == "alice"


def test_a_token_that_is_valid_only_because_clocks_differ_lasts_as_long_as_that() -> None:
    assert tokens().check(signed(exp=NOW_S - 10), NOW).until == (NOW_S + 20) * 1000


@each("token", ["axb", "a.b", "a.b.c", "..", f"{part([])}.{part({})}.", f"{part(b'{')}.e30.", "é.é.é", "a.b.c.d"])
def test_what_is_no_token_is_said(token: str) -> None:
    assert "not a JSON Web Token" in why(token)


def test_a_token_of_many_levels_or_digits_is_no_token() -> None:
    for header in (b"[" * 100_000, b'{"alg":' + b"9" * 10_000 + b"}", b'{"crit":["b64"],"b64":false,"alg":"RS256"}'):
        assert why(f"{part(header)}.e30.AA")
