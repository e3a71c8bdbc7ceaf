"""The formats and jobs on a broker with TLS, SASL and ACLs, as a user that has what they need, and nothing else."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from strandline.client.admin.acls import create_acls
from strandline.client.admin.topics import create_topic
from strandline.client.admin.users import alter_credentials, upsertion
from strandline.client.ask import config_of
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.metadata.security.acls import CLUSTER_NAME, Acl, AclOperation, AclPermission, PatternType, ResourceType
from strandline.testing.certificates import write_private
from strandline.testing.local_cluster import LocalCluster
from strandline.testing.secured import ALICE, MECHANISM
from strandline_spark.cli.options import kafka_options
from strandline_spark.errors import sentence_of
from strandline_spark.jobs.audit.job import audit
from strandline_spark.jobs.audit.ledger import losses_of
from strandline_spark.jobs.audit.report import CLEAN, report_of
from strandline_spark.jobs.emit.job import emit
from strandline_spark.jobs.ingest.job import ingest
from strandline_spark.jobs.lag.sampling import Sampler
from strandline_spark.tables import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

USER, PASSWORD, MINE = "pipeline", "spark's own", "pipeline-"
Op, Kind = AclOperation, ResourceType
# docs/security.md has the same rows.
NEEDS = [
    *((Kind.TOPIC, MINE, op) for op in (Op.READ, Op.WRITE, Op.DESCRIBE_CONFIGS)),
    *((Kind.TOPIC, "__strandline_sink", op) for op in (Op.READ, Op.WRITE, Op.CREATE)),
    *((Kind.TRANSACTIONAL_ID, "strandline-sink", op) for op in (Op.WRITE, Op.TWO_PHASE_COMMIT)),
    (Kind.GROUP, MINE, Op.DESCRIBE),
    (Kind.CLUSTER, CLUSTER_NAME, Op.DESCRIBE),
]


def allowed(kind: ResourceType, name: str, operation: AclOperation) -> Acl:
    return Acl(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.LITERAL if kind == Kind.CLUSTER else PatternType.PREFIXED,
        principal=f"User:{USER}",
        host="*",
        operation=operation,
        permission=AclPermission.ALLOW,
    )


class Secured(NamedTuple):
    cluster: LocalCluster
    admin: ClientConfig
    options: dict[str, str]  # of the user

    def topic(self, prefix: str = MINE) -> str:
        name = f"{prefix}{uuid.uuid4().hex[:8]}"
        create_topic(self.admin, name, 2)
        return name


@pytest.fixture(scope="module")
def here(secured: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    assert secured.secured is not None
    admin = config_of(secured.bootstrap, secured.client)
    alter_credentials(admin, upsertion(USER, MECHANISM, PASSWORD))
    create_acls(admin, [allowed(*row) for row in NEEDS])
    text = secured.secured.properties_path(ALICE).read_text().replace('username="alice"', f'username="{USER}"')
    file = tmp_path_factory.mktemp("client") / "pipeline.properties"
    write_private(file, text.replace(secured.secured.password(ALICE), PASSWORD))
    yield Secured(secured, admin, kafka_options(secured.bootstrap, (), file))


def test_tables_and_topics_by_every_job(spark: "SparkSession", here: Secured, tmp_path: Path) -> None:
    plain, once, emitted = here.topic(), here.topic(), here.topic()
    rows = spark.range(20).selectExpr("CAST(id AS STRING) key", "CAST(id AS STRING) value")
    rows.write.format("strandline").options(**here.options, topic=plain).mode("append").save()
    exactly = {**here.options, "topic": once, "deliveryGuarantee": "exactly-once"}
    rows.write.format("strandline").options(**exactly).mode("append").save()
    emit(rows, topic=emitted, checkpoint=str(tmp_path / "emit"), options=here.options)
    for topic in (plain, once, emitted):
        found = spark.read.format("strandline").options(**here.options, subscribe=topic).load()
        assert sorted(int(row.value) for row in found.select("value").collect()) == list(range(20)), topic

    ingest(
        {
            "source": {"topic": once, "options": here.options},
            "value": {"format": "text"},
            "sink": {"table": str(tmp_path / "table")},
        },
        spark=spark,
    )
    assert read_table(spark, "parquet", str(tmp_path / "table")).count() == 20

    replicas = {**here.options, "subscribe": f"{plain},{once}"}
    report = report_of(audit(spark, replicas, compacted=[]), 20, losses_of(ClientConfig.of(here.options)), ())
    assert (report.status, report.totals["replicas"]) == (CLEAN, 4)


def test_lag_of_what_the_user_may_see(here: Secured) -> None:
    topic = here.topic()
    with Cluster(ClientConfig.of(here.options)) as client:
        samples = Sampler(client, topics=[topic], clock=lambda: 61.0).sample()
    assert {sample.topic for sample in samples} == {topic}


def test_a_topic_of_others_is_refused_in_one_sentence_without_the_password(
    spark: "SparkSession", here: Secured
) -> None:
    topic = here.topic("others-")
    with pytest.raises(Exception) as caught:
        spark.read.format("strandline").options(**here.options, subscribe=topic).load().count()
    assert "TOPIC_AUTHORIZATION_FAILED" in sentence_of(caught.value).problem
    rows = spark.range(1).selectExpr("'x' value")
    with pytest.raises(Exception) as refused:
        rows.write.format("strandline").options(**here.options, topic=topic).mode("append").save()
    assert "TOPIC_AUTHORIZATION_FAILED" in sentence_of(refused.value).problem
    assert PASSWORD not in str(caught.value) + str(refused.value)
