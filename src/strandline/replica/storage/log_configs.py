"""The logs' configurations, as metadata has them now: one for all logs of a topic, until metadata changes."""

from strandline.log.config import DAY_MS, LogConfig
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.replica.hosting.host import Host

PRODUCER_ID_EXPIRATION = "producer.id.expiration.ms"


class LogConfigs:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.by_topic: dict[str, LogConfig] = {}

    def metadata_changed(self) -> None:
        self.by_topic.clear()

    def of(self, topic: str) -> LogConfig:
        config = self.by_topic.get(topic)
        if config is None:
            config = self.by_topic[topic] = self.read(topic)
            assert config.segment_bytes > 0, topic
        return config

    def read(self, topic: str) -> LogConfig:
        host, me = self.host, str(self.host.me)

        def setting(key: str) -> object:
            if key == PRODUCER_ID_EXPIRATION:
                return self.producer_id_expiration_ms
            return host.image.topic_config(topic, key, host.static, me)

        return LogConfig.of(setting)

    @property
    def producer_id_expiration_ms(self) -> int:
        span = dynamic_value(self.host.image.configs, str(self.host.me), PRODUCER_ID_EXPIRATION)
        if span is None:
            span = self.host.static.get(PRODUCER_ID_EXPIRATION, DAY_MS)
        assert isinstance(span, int)
        assert span > 0
        return span
