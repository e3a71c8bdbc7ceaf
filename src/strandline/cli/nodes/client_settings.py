"""How clients reach a cluster of `strandline up --secure`: settings to copy. No password is in them: each reads its
file, so that none is on a screen or in a shell's history."""

from collections.abc import Iterator

from strandline.testing.secured import ALICE, MECHANISM, PREFIX, SecuredFolder


def greeting(secured: SecuredFolder, bootstrap: str) -> str:
    return "\n".join(lines(secured, bootstrap))


def lines(secured: SecuredFolder, bootstrap: str) -> Iterator[str]:
    authority, password = str(secured.authority), str(secured.password_path(ALICE))
    yield "TLS, SASL and ACLs are on. Passwords are in files that only you may read:"
    yield f"  admin (super user): {secured.properties_path('admin')}"
    yield f"  {ALICE} (all on topics, groups and transactional ids {PREFIX}*): {secured.properties_path(ALICE)}"
    yield ""
    yield "Java (new KafkaProducer, kafka-console-producer --command-config):"
    yield f"  bootstrap.servers={bootstrap}, and the properties of {secured.properties_path(ALICE)}"
    yield "confluent-kafka:"
    yield f'  {{"bootstrap.servers": "{bootstrap}", "security.protocol": "SASL_SSL", "ssl.ca.location": "{authority}",'
    yield f'   "sasl.mechanism": "{MECHANISM}", "sasl.username": "{ALICE}",'
    yield f'   "sasl.password": open("{password}").read().strip()}}'
    yield "kafka-python, aiokafka:"
    yield f'  dict(bootstrap_servers="{bootstrap}", security_protocol="SASL_SSL",'
    yield f'       ssl_context=ssl.create_default_context(cafile="{authority}"),'
    yield f'       sasl_mechanism="{MECHANISM}", sasl_plain_username="{ALICE}",'
    yield f'       sasl_plain_password=open("{password}").read().strip())'
    yield "kcat:"
    yield f"  kcat -b {bootstrap} -X security.protocol=SASL_SSL -X ssl.ca.location={authority} \\"
    yield f'    -X sasl.mechanism={MECHANISM} -X sasl.username={ALICE} -X sasl.password="$(cat {password})" -L'
