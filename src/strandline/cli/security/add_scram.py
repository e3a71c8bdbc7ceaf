"""`strandline format --add-scram`: the users that a new cluster begins with (KIP-900), as kafka-storage writes them:

    SCRAM-SHA-256=[name=alice,password=secret,iterations=8192]
    SCRAM-SHA-512=[name=alice,salt=BASE64,saltedpassword=BASE64]

Salt and iterations may be left out with a password. An error names what is wrong, and no password.
"""

import hashlib
import secrets
from base64 import b64decode
from binascii import Error as Base64Error

from strandline.metadata.records import UserScramCredentialRecord
from strandline.metadata.security.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    credential_record,
    salted_credential,
)

SALT_BYTES = 24
PARTS = ("name", "password", "saltedpassword", "salt", "iterations")


def user_of(argument: str) -> UserScramCredentialRecord:
    """Raises ValueError."""
    mechanism, equals, text = argument.strip().partition("=")
    if not equals:
        raise ValueError("--add-scram needs MECHANISM=[name=USER,password=PASSWORD]")
    if mechanism not in HASHES:
        raise ValueError(f"The add-scram mechanism {mechanism} is not supported.")
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError("Expected configuration string to start with [ and to end with ]")
    given = parts_of(text[1:-1])
    name = given.get("name")
    if not name:
        raise ValueError("You must supply 'name' to add-scram")
    iterations = iterations_in(given, mechanism)
    salt = decoded("salt", given["salt"]) if "salt" in given else secrets.token_bytes(SALT_BYTES)
    return credential_record(
        name, salted_credential(mechanism, salted_in(given, mechanism, salt, iterations), salt, iterations)
    )


def parts_of(text: str) -> dict[str, str]:
    """A value may be in double quotes."""
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError("Each SCRAM component needs an equals sign; a password has no comma")
        given[key] = value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value
    unknown = [key for key in given if key not in PARTS]
    if unknown:
        raise ValueError(f"Unknown SCRAM configurations: {', '.join(sorted(unknown))}")
    return given


def iterations_in(given: dict[str, str], mechanism: str) -> int:
    text = given.get("iterations", str(ITERATIONS_MIN))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"Failed to parse iterations count: {text}")
    iterations = int(text)
    if iterations < ITERATIONS_MIN:
        raise ValueError(f"The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {mechanism}")
    if iterations > ITERATIONS_MAX:
        raise ValueError(f"The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {mechanism}")
    return iterations


def salted_in(given: dict[str, str], mechanism: str, salt: bytes, iterations: int) -> bytes:
    if given.get("password"):
        return hashlib.pbkdf2_hmac(HASHES[mechanism], given["password"].encode(), salt, iterations)
    if "saltedpassword" not in given:
        raise ValueError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "salt" not in given:
        raise ValueError("You must supply 'salt' with 'saltedpassword' to add-scram")
    salted = decoded("saltedpassword", given["saltedpassword"])
    size = hashlib.new(HASHES[mechanism]).digest_size
    if len(salted) != size:
        raise ValueError(f"A saltedpassword of {mechanism} has {size} bytes, not {len(salted)}")
    return salted


def decoded(what: str, text: str) -> bytes:
    try:
        found = b64decode(text, validate=True)
    except Base64Error:
        found = b""
    if not found:
        raise ValueError(f"The given {what} is not base64")
    return found
