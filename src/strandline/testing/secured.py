"""What a local cluster with TLS, SASL and ACLs has besides its nodes: an authority, certificates, users, permissions.

In the cluster's folder lie

    ca.pem, ca.key                      the authority that signed the nodes' certificates
    node-<id>.store                     a node's private key and certificate
    USER.password, USER.properties      of each user: the password alone, and the settings of Kafka's clients

They are made once, and stay: whoever starts the cluster again finds the same users.

Invariants:
  - what has a private key or a password has mode 0600;
  - users and their passwords are in files before the metadata has them;
  - alice gets her ACLs once, so that ACLs which an operator removes do not come back.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

from strandline.broker.config import parse_properties
from strandline.client.admin.acls import create_acls
from strandline.client.ask import config_of
from strandline.metadata.configs.node_configs import STANDARD_AUTHORIZER
from strandline.metadata.records import UserScramCredentialRecord
from strandline.metadata.security.acls import Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.metadata.security.scram import ITERATIONS_MIN, credential_record
from strandline.security.protocols import SASL_SSL
from strandline.security.scram import credential_of
from strandline.testing.certificates import make_authority, make_certificate, write_private

ADMIN, ALICE = "admin", "alice"
USERS = (ADMIN, ALICE)
PREFIX = "alice-"  # of everything that alice may use
MECHANISM = "SCRAM-SHA-512"
LOGIN_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD_BYTES = 18
GRANTED = "acls.added"
OF_ALICE = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


class SecuredFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    def store(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}.store"

    def properties_path(self, user: str) -> Path:
        return self.folder / f"{user}.properties"

    def password_path(self, user: str) -> Path:
        return self.folder / f"{user}.password"

    def is_made(self) -> bool:
        return self.authority_key.exists()

    # --- making

    def make(self, node_ids: range) -> None:
        """What is missing. Raises NoCertificate, OSError."""
        make_authority(self.authority, self.authority_key)
        for node_id in node_ids:
            make_certificate(self.store(node_id), f"node-{node_id}", self.authority, self.authority_key)
        for user in USERS:
            if not self.password_path(user).exists():
                write_private(self.password_path(user), f"{secrets.token_urlsafe(PASSWORD_BYTES)}\n")
            if not self.properties_path(user).exists():
                write_private(self.properties_path(user), self.client_text(user))

    def client_text(self, user: str) -> str:
        """Properties that clients in Java read too. Passwords have no letter that would need an escape."""
        login = f'{LOGIN_MODULE} required username="{user}" password="{self.password(user)}";'
        rows = {
            "security.protocol": SASL_SSL,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
        }
        return "".join(f"{key}={value}\n" for key, value in rows.items())

    def password(self, user: str) -> str:
        return self.password_path(user).read_text().strip()

    def client(self, user: str) -> dict[str, str]:
        """How a client of ours comes in as this user."""
        return dict(parse_properties(self.properties_path(user).read_text()))

    def credentials(self) -> list[UserScramCredentialRecord]:
        """Of the users with whom a new cluster begins."""
        return [first_credential(user, self.password(user)) for user in USERS]

    def node_properties(self, node_id: int) -> dict[str, str]:
        return {
            "listener.security.protocol.map": f"{SASL_SSL}:{SASL_SSL},CONTROLLER:{SASL_SSL}",
            "sasl.enabled.mechanisms": MECHANISM,
            "ssl.keystore.location": str(self.store(node_id)),
            "ssl.truststore.location": str(self.authority),
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:{ADMIN}",
        }

    def grant(self, bootstrap: str) -> None:
        """Raises StrandlineError."""
        done = self.folder / GRANTED
        if not done.exists():
            create_acls(config_of(bootstrap, self.client(ADMIN)), acls_of_alice())
            done.touch()


def first_credential(user: str, password: str) -> UserScramCredentialRecord:
    salt = secrets.token_bytes(24)
    return credential_record(user, credential_of(MECHANISM, password, salt, ITERATIONS_MIN))


def acls_of_alice() -> list[Acl]:
    return [
        Acl(
            resource_type=kind,
            resource_name=PREFIX,
            pattern_type=PatternType.PREFIXED,
            principal=f"User:{ALICE}",
            host="*",
            operation=AclOperation.ALL,
            permission=AclPermission.ALLOW,
        )
        for kind in OF_ALICE
    ]


def was_made_secure(properties: Mapping[str, str]) -> bool:
    """Was the cluster of a node with these properties?"""
    return properties.get("inter.broker.listener.name") == SASL_SSL
