"""Bugs of leaders and followers: the high watermark, the ISR as the leader sees it, fetching, truncation, producing."""

from strandline.sim.planted.planted import Change, Planted, table

LEADER = "strandline.replica.leader"
FOLLOWER = "strandline.replica.follower"
FETCHER = "strandline.replica.fetcher"
REPLICAS = "strandline.replica.replicas"
READING = "strandline.replica.reading"
PRODUCING = "strandline.replica.producing"
HOSTED = "strandline.replica.hosted"
ALTERATIONS = "strandline.replica.alterations"
OFFSETS = "strandline.replica.offsets"

REPLICATION = table(
    # --- who is in sync
    Planted(
        name="leader-begins-anew-in-its-own-epoch",
        module=REPLICAS,
        old="if type(role) is Leader and role.epoch == partition.leader_epoch:",
        new="if False:",
        trap="KIP-966 check 2: only a newer leader epoch initialises",
        harm="a leader that hears of its own ISR change forgets a pending one and counts without a replica that the "
        "controller then commits to the ISR",
    ),
    Planted(
        name="new-leader-believes-followers-have-its-log",
        module=LEADER,
        old="in_sync = ReplicaState(-1, -1, now,",
        new="in_sync = ReplicaState(log.log_end_offset, -1, now,",
        trap="KIP-966 check 3: a new leader resets what it knows of followers",
        harm="a new leader commits records that its followers do not have",
    ),
    Planted(
        name="unknown-follower-counts-as-complete",
        module=LEADER,
        old="NEVER_FETCHED = ReplicaState(-1, ",
        new="NEVER_FETCHED = ReplicaState(1 << 62, ",
        trap="KIP-966 check 4: the follower's log end is known",
        harm="a replica enters the ISR that has not yet fetched this partition at all",
    ),
    Planted(
        name="joins-below-high-watermark",
        module=LEADER,
        old="if state.log_end_offset < self.high_watermark:",
        new="if False:",
        trap="KIP-966 check 5: log end >= high watermark",
        harm="a replica enters the ISR without records that are committed",
    ),
    Planted(
        name="joins-below-epoch-start",
        module=LEADER,
        old="if state.log_end_offset < self.epoch_start_offset:",
        new="if False:",
        trap="T36, KAFKA-7128, KIP-966 check 6: log end >= start of the leader epoch",
        harm="a replica enters the ISR of a new leader whose high watermark is still old, without records that an "
        "earlier leader committed",
    ),
    Planted(
        name="leader-ignores-broker-epoch",
        module=LEADER,
        old="return broker_epoch in (broker.epoch, UNKNOWN_BROKER_EPOCH)",
        new="return True",
        trap="T15, KIP-903",
        harm="a leader proposes and counts a replica by what an earlier incarnation of it had fetched",
    ),
    Planted(
        name="earlier-incarnation-overwrites-later",
        module=LEADER,
        old="if broker_epoch < old.broker_epoch and broker_epoch != UNKNOWN_BROKER_EPOCH:",
        new="if False:",
        trap="T15, KAFKA-15221",
        harm="a fetch that a dead incarnation left in the network speaks for its successor, which lost its tail",
    ),
    Planted(
        name="older-isr-taken-for-news",
        module=LEADER,
        old="if partition_epoch <= self.partition_epoch:",
        new="if False:",
        trap="T21, KIP-497",
        harm="metadata that arrives after an AlterPartition answer brings back the ISR of before",
    ),
    Planted(
        name="doubtful-refusal-taken-for-certain",
        module=ALTERATIONS,
        old="        if error in NOT_DONE:",
        new="        if error is not ErrorCode.NONE:",
        trap="T21, KIP-497",
        harm="a leader falls back to the committed ISR though the controller may have made the change",
    ),
    # --- the high watermark
    Planted(
        name="ineligible-replica-holds-high-watermark",
        module=LEADER,
        old="or (self.is_caught_up(state, now) and self.cluster.is_eligible(node, state.broker_epoch))",
        new="or self.is_caught_up(state, now)",
        trap="T17, KAFKA-15021",
        harm="a fenced follower outside the ISR delays commits until it counts as lagging",
    ),
    Planted(
        name="isr-change-moves-nothing",
        module=REPLICAS,
        old="        if leader.advance(now):",
        new="        if False:",
        trap="T20, KAFKA-13091",
        harm="after a shrink of the ISR nobody computes the high watermark, and acks=all waits for nothing",
    ),
    Planted(
        name="pending-replica-counts-for-min-isr",
        module=LEADER,
        old="if len(isr.isr) < self.min_isr:",
        new="if len(isr.maximal) < self.min_isr:",
        trap="T21, KIP-966",
        harm="records are committed while the committed ISR is below min.insync.replicas",
    ),
    Planted(
        name="pending-replica-counts-for-acks-all",
        module=PRODUCING,
        old="if acks == ACKS_ALL and len(leader.isr.isr) < leader.min_isr:",
        new="if acks == ACKS_ALL and len(leader.isr.maximal) < leader.min_isr:",
        trap="T21, KIP-966",
        harm="acks=all is accepted below min.insync.replicas while a replica is only proposed",
    ),
    Planted(
        name="leaver-forgotten-before-agreed",
        module=LEADER,
        old="maximal = isr.maximal\n",
        new="maximal = tuple(n for n, _ in isr.proposal) if type(isr) is PendingShrink else isr.maximal\n",
        trap="T21, KIP-497",
        harm="records are committed without a replica that is in the ISR until the controller agrees, and may lead",
    ),
    Planted(
        name="newcomer-not-counted-before-agreed",
        module=LEADER,
        old="                node in maximal\n                or (self.is_caught_up(state, now) and self.cluster"
        ".is_eligible(node, state.broker_epoch))",
        new="                node in isr.isr",
        trap="T21, KIP-497",
        harm="records are committed without a replica that the controller has already put into the ISR",
    ),
    Planted(
        name="high-watermark-ungated",
        module=LEADER,
        old="if len(isr.isr) < self.min_isr:\n            return False",
        new="if not isr.isr:\n            return False",
        trap="T24, KAFKA-15583",
        harm="records become visible that fewer than min.insync.replicas have",
    ),
    Planted(
        name="new-leader-commits-its-whole-log",
        module=REPLICAS,
        old="high_watermark=hosted.high_watermark,",
        new="high_watermark=hosted.log.log_end_offset,",
        trap="T36",
        harm="a new leader shows its tail to consumers before any follower has it",
    ),
    Planted(
        name="follower-raises-high-watermark-past-its-log",
        module=FOLLOWER,
        old="high_watermark = min(answer.high_watermark, end)",
        new="high_watermark = answer.high_watermark",
        trap="T22, KAFKA-14704",
        harm="a follower that becomes leader believes records committed that it does not have",
    ),
    Planted(
        name="high-watermark-survives-truncation",
        module=FOLLOWER,
        old="        log.truncate_to(target)  # also where nothing is cut: an epoch that starts there goes (T33)\n"
        "        self.clamp()\n",
        new="        log.truncate_to(target)\n",
        trap="T23, KAFKA-9491",
        harm="after a truncation the high watermark lies behind the log's end",
    ),
    Planted(
        name="high-watermark-survives-a-fresh-start",
        module=FOLLOWER,
        old="        log.truncate_fully_and_start_at(offset)\n        self.high_watermark = offset",
        new="        log.truncate_fully_and_start_at(offset)",
        trap="T23, KAFKA-9491",
        harm="a follower that copies anew from the leader's log start keeps a high watermark outside its log",
    ),
    # --- fetching and truncating
    Planted(
        name="fetch-answer-for-another-offset",
        module=FOLLOWER,
        old="if asked.leader_epoch != self.epoch or asked.offset != log.log_end_offset:",
        new="if asked.leader_epoch != self.epoch:",
        trap="KIP-966 check 7: offset of a fetch response",
        harm="a follower that the leader believes elsewhere takes the same answer for ever, and never asks again",
        also=Change(FETCHER, "            or role.log.log_end_offset != asked.offset\n", ""),
    ),
    Planted(
        name="fetch-answer-of-another-epoch",
        module=FOLLOWER,
        old="if asked.leader_epoch != self.epoch or asked.offset != log.log_end_offset:",
        new="if asked.offset != log.log_end_offset:",
        trap="KIP-966 check 8: leader epoch of a fetch response",
        harm="records and high watermark of a deposed leader are taken in the epoch of its successor",
    ),
    Planted(
        name="stale-divergence-truncates",
        module=FOLLOWER,
        old="if asked.leader_epoch != self.epoch or asked.offset != log.log_end_offset:",
        new="if False:",
        trap="T31, KAFKA-18991",
        harm="the divergence that a former leader named cuts what the present leader has committed",
    ),
    Planted(
        name="batches-of-a-later-epoch-appended",
        module="strandline.log.log",
        old="if header.partition_leader_epoch > leader_epoch_max:",
        new="if False:",
        trap="T32, KAFKA-18723",
        harm="a follower takes batches of a leadership that it has not heard of, and its epochs lie",
        also=Change(HOSTED, "        return ErrorCode.FENCED_LEADER_EPOCH\n", "        return None\n"),
    ),
    Planted(
        name="kip-101-truncation",
        module=FOLLOWER,
        old="        return min(own_end, self.log.log_end_offset)",
        new="        return min(end, self.log.log_end_offset)",
        trap="T37, KAFKA-6361, KIP-279",
        harm="after two leader changes in a row a follower keeps records of an epoch that its leader never had",
    ),
    Planted(
        name="divergent-epoch-unnoticed",
        module=READING,
        old="if epoch < last_epoch or end < offset:",
        new="if end < offset:",
        trap="T37, KIP-595",
        harm="a follower whose last epoch the leader never had appends to its own tail",
    ),
    # --- acknowledging
    Planted(
        name="acknowledged-before-replicated",
        module=PRODUCING,
        old="if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset:",
        new="if acks == ACKS_ALL and leader.high_watermark < appended.last_offset:",
        trap="acks=all",
        harm="a batch is acknowledged whose last record is not committed",
    ),
    Planted(
        name="duplicate-acknowledged-at-once",
        module=PRODUCING,
        old="if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset:",
        new="if acks == ACKS_ALL and leader.high_watermark <= appended.last_offset and not appended.duplicate:",
        trap="KIP-98",
        harm="a batch that is sent again is acknowledged though its first copy is not committed yet",
    ),
    Planted(
        name="waits-for-one-record-less",
        module=HOSTED,
        old="waiting[0].required <= leader.high_watermark:",
        new="waiting[0].required <= leader.high_watermark + 1:",
        trap="acks=all",
        harm="parked produce requests are answered one record too early",
    ),
    Planted(
        name="consumers-read-uncommitted",
        module=READING,
        old="upto = log.log_end_offset if is_follower else high_watermark",
        new="upto = log.log_end_offset",
        trap="KIP-966 ConsistentRead",
        harm="consumers see records that a change of leader takes back",
    ),
    Planted(
        name="deletes-behind-high-watermark",
        module=OFFSETS,
        old="if not 0 <= offset <= leader.high_watermark:",
        new="if not 0 <= offset <= leader.log.log_end_offset:",
        trap="KIP-107",
        harm="DeleteRecords removes what is not committed, and the log starts behind its high watermark",
    ),
    # --- acting on metadata
    Planted(
        name="acts-on-history",
        module=REPLICAS,
        old="if registered is None or registered.epoch != self.broker_epoch:",
        new="if registered is None:",
        trap="KAFKA-13959",
        harm="a broker that replays old metadata leads in an epoch that is over",
    ),
    Planted(
        name="deletes-what-metadata-has-not-named-yet",
        module="strandline.broker.broker",
        old="if not self.strays_deleted and self.lifecycle.is_unfenced:",
        new="if not self.strays_deleted:",
        trap="T39, KAFKA-16234",
        harm="a broker that has not caught up with metadata deletes its own logs as strays",
    ),
)
