"""Which operations a client may do on a resource, as the bits that responses carry: bit n is Kafka's AclOperation n.

There is no authorizer, so every client may do all that a resource of the kind supports.
"""

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = (
    1 << operation for operation in range(3, 13)
)

UNKNOWN_OPERATIONS = -(1 << 31)  # nobody asked

ON_TOPIC = READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
ON_GROUP = READ | DELETE | DESCRIBE | DESCRIBE_CONFIGS | ALTER_CONFIGS
ON_CLUSTER = CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | DESCRIBE_CONFIGS | ALTER_CONFIGS | IDEMPOTENT_WRITE
