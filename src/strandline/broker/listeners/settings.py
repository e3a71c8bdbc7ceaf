"""What one listener is configured with: the settings of the node, and those that the listener has for itself.

Invariants:
  - a setting of the listener goes before the node's; a dynamic one before what the file says;
  - a secret leaves here only as a `Secret`.
"""

from collections.abc import Mapping

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.node_configs import NODE_CONFIGS
from strandline.metadata.configs.sasl_configs import mechanism_and_key
from strandline.metadata.configs.tls_configs import DYNAMIC_TLS_KEYS, OF_LISTENERS, listener_and_key, prefixed


class ListenerSettings(Value, frozen=True):
    listener: str
    protocol: str
    node: dict[str, ConfigValue]  # every key of the table
    own: dict[str, ConfigValue]  # of this listener alone
    of_mechanisms: dict[str, dict[str, ConfigValue]]  # of one mechanism there, by its name

    def value(self, key: str) -> ConfigValue:
        assert key.startswith(OF_LISTENERS), "a key that listeners have"
        return self.own[key] if key in self.own else self.node[key]

    def text(self, key: str) -> str:
        """Empty if the key is not set and has no default."""
        value = self.value(key)
        assert value is None or isinstance(value, str), key
        return value or ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.value(key)
        assert isinstance(value, tuple), key
        return value

    def secret(self, key: str) -> Secret | None:
        """None if it is not set; an empty text is none either."""
        value = self.value(key)
        assert value is None or isinstance(value, Secret), key
        return value if value is not None and value.reveal else None

    def whole(self, key: str) -> int:
        value = self.value(key)
        assert isinstance(value, int) and not isinstance(value, bool), key
        return value

    def for_mechanism(self, mechanism: str) -> "ListenerSettings":
        """What holds there for one mechanism of SASL."""
        own = self.own | self.of_mechanisms.get(mechanism, {})
        return ListenerSettings(self.listener, self.protocol, self.node, own, {})

    def named(self, key: str) -> str:
        """The key as it is set, for messages."""
        return prefixed(self.listener, key) if key in self.own else key

    def changed_by(self, dynamic: Mapping[str, str]) -> "ListenerSettings":
        """With what a running broker was given (KIP-226): only keys for certificates, only those of this listener."""
        own = dict(self.own)
        for name, text in dynamic.items():
            found = listener_and_key(name)
            if found is not None and found[0] == self.listener.lower() and found[1] in DYNAMIC_TLS_KEYS:
                own[found[1]] = NODE_CONFIGS[found[1]].parse(text)
        return ListenerSettings(self.listener, self.protocol, self.node, own, self.of_mechanisms)


def read_of_mechanisms(
    properties: Mapping[str, str], problems: list[str]
) -> dict[str, dict[str, dict[str, ConfigValue]]]:
    """The settings of single mechanisms, by the listener's name in lower case and the mechanism. Adds to `problems`."""
    found: dict[str, dict[str, dict[str, ConfigValue]]] = {}
    for name, text in properties.items():
        own = mechanism_and_key(name)
        if own is None:
            continue
        listener, mechanism, key = own
        row = NODE_CONFIGS[key]
        problem = row.why_invalid(text)
        if problem is not None:
            problems.append(problem.replace(row.name, name))
        else:
            found.setdefault(listener, {}).setdefault(mechanism, {})[key] = row.parse(text)
    return found


def read_own(properties: Mapping[str, str], problems: list[str]) -> dict[str, dict[str, ConfigValue]]:
    """The settings of single listeners, by the listener's name in lower case. Adds to `problems`."""
    found: dict[str, dict[str, ConfigValue]] = {}
    for name, text in properties.items():
        own = listener_and_key(name)
        row = NODE_CONFIGS.get(own[1]) if own is not None else None
        if own is None or row is None:
            continue
        problem = row.why_invalid(text)
        if problem is not None:
            problems.append(problem.replace(row.name, name))
        else:
            found.setdefault(own[0], {})[row.name] = row.parse(text)
    return found
