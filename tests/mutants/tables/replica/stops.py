"""Mutants of stops and starts: the marker, and what a start finds to be lost."""

from tests.mutants.mutant import Breaks, Mutant, table

STOPS = table(
    Mutant(
        "a stop vouches for a log without the segments that somebody took while the process ran",
        "log/evidence/inventory.py",
        "        segments=tuple(segments_of(disk, log)),",
        "        segments=tuple(segments_in(disk, log.directory)),",
        Breaks.DURABILITY,
        ("unit/replica/losses/test_withdrawing.py::test_nor_is_what_was_taken_while_the_process_ran_and_did_not_look",),
    ),
    Mutant(
        "a log that cannot be closed ends the node",
        "replica/hosting/host.py",
        """                    hosted.log.close()
            except DiskError as error:
                self.fail(hosted.directory, error)
""",
        """                    hosted.log.close()
            except ZeroDivisionError:
                pass
""",
        Breaks.ANSWERS,
        ("unit/replica/storage/test_directories.py::test_a_log_that_cannot_be_closed_takes_its_directory_offline",),
    ),
    Mutant(
        "only the first directory gets a marker",
        "log/evidence/clean_shutdown.py",
        "    for path, directory_id in place.directories:\n",
        "    for path, directory_id in place.directories[:1]:\n",
        Breaks.AGREEMENT,
        (
            "kip/kip_966/test_kip_966_shutdown.py::test_a_broker_writes_its_epoch_when_it_shuts_down_as_json_with_a_version_in_each_directory",
        ),
        ("A broker that shuts down writes its epoch into a JSON file",),
    ),
    Mutant(
        "a marker has no version",
        "log/evidence/clean_shutdown.py",
        "        return cls(0, broker_epoch,",
        "        return cls(1, broker_epoch,",
        Breaks.ANSWERS,
        (
            "kip/kip_966/test_kip_966_shutdown.py::test_a_broker_writes_its_epoch_when_it_shuts_down_as_json_with_a_version_in_each_directory",
        ),
        ("A broker that shuts down writes its epoch into a JSON file",),
    ),
    Mutant(
        "a process that never registered vouches with the epoch of its last life",
        "broker/lifecycle.py",
        "        self.last_epoch = -1 ",
        "        self.last_epoch = identity.previous_broker_epoch ",
        Breaks.DURABILITY,
        (
            "kip/traps/test_registration.py::test_t27_a_process_that_never_registered_knows_no_epoch_and_vouches_for_nothing",
        ),
        ("A broker that shuts down before it knows its epoch writes",),
    ),
    Mutant(
        "a marker of an earlier life is one of the last",
        "controller/brokers/brokers.py",
        "(NEVER_REGISTERED if old is None else old.epoch) == request.previous_broker_epoch\n",
        "(NEVER_REGISTERED if old is None else old.epoch) >= request.previous_broker_epoch >= 0\n",
        Breaks.DURABILITY,
        ("kip/traps/test_registration.py::test_t28_a_marker_of_another_life_is_no_clean_stop",),
        ("A stop is clean if the marker's epoch is that of the registration",),
    ),
    Mutant(
        "a start does not look at how the stop left the records",
        "log/evidence/inventory.py",
        "    if tuple(segments_in(disk, directory)) != row.segments:\n        return State.RECORDS_CHANGED\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/losses/test_withdrawing.py::test_what_is_not_as_the_stop_left_it_is_found_before_there_is_metadata",
        ),
        ("Beyond the text: a clean stop records the state of each log, and the next",),
    ),
    Mutant(
        "a log that is not as the stop left it is believed",
        "replica/losses/losing.py",
        "        if not as_left or (clean and start < high_watermark):\n",
        "        if False:\n",
        Breaks.DURABILITY,
        (
            "unit/replica/losses/test_withdrawing.py::test_what_is_not_as_the_stop_left_it_is_found_before_there_is_metadata",
            "kip/test_lost_replicas.py::test_the_last_one_in_sync_is_not_elected_cleanly_when_it_has_lost_records",
        ),
        ("Beyond the text: a clean stop records the state of each log, and the next",),
    ),
    Mutant(
        "a stop says how it left the logs of one directory",
        "log/evidence/clean_shutdown.py",
        "    logs = {directory: marker.logs for directory, marker in found.items()}\n",
        "    logs = dict([(directory, marker.logs) for directory, marker in found.items()][:1])\n",
        Breaks.DURABILITY,
        ("unit/log/test_files.py::test_a_stop_says_how_it_left_the_logs_in_all_directories",),
        ("Beyond the text: a clean stop records the state of each log, and the next",),
    ),
    Mutant(
        "a registration takes nothing of what was lost",
        "controller/brokers/brokers.py",
        "    changes = basis.departure(node, lost_tail=not is_clean, withdrawn=withdrawn)\n",
        "    changes = basis.departure(node, lost_tail=not is_clean)\n",
        Breaks.DURABILITY,
        ("unit/controller/elections/test_withdrawals.py::test_a_registration_takes_only_what_was_lost_from_the_elr",),
        ("… only a replica that lost records leaves ISR and ELR, in the batch that",),
    ),
    Mutant(
        "with one lost replica all of its broker's leave",
        "controller/brokers/brokers.py",
        "    changes = basis.departure(node, lost_tail=not is_clean, withdrawn=withdrawn)\n",
        "    changes = basis.departure(node, lost_tail=not is_clean or bool(withdrawn), withdrawn=withdrawn)\n",
        Breaks.AGREEMENT,
        ("unit/controller/elections/test_withdrawals.py::test_a_registration_takes_only_what_was_lost_from_the_elr",),
        ("… only a replica that lost records leaves ISR and ELR, in the batch that",),
    ),
    Mutant(
        "a heartbeat lets a broker in before it takes what was lost",
        "controller/brokers/brokers.py",
        "    elif withdrawn:\n",
        "    elif withdrawn and not broker.fenced:\n",
        Breaks.DURABILITY,
        (
            "unit/controller/elections/test_withdrawals.py::test_a_fenced_broker_is_not_let_in_by_the_heartbeat_that_says_what_it_lost",
        ),
        ("… or before a heartbeat unfences the broker",),
    ),
    Mutant(
        "a replica that lost records takes part before metadata says so",
        "replica/withdrawing.py",
        "        if host.withdrawals.holds(at, partition):\n            return None\n",
        "",
        Breaks.DURABILITY,
        (
            "unit/replica/losses/test_withdrawing.py::test_a_replica_that_lost_records_has_no_role_until_metadata_has_it_out_of_the_isr",
        ),
        ("has no role until metadata says so",),
    ),
    Mutant(
        "a replica in neither ISR nor ELR cuts its log while it may be proposed",
        "replica/hosting/withdrawals.py",
        "        may_be_member = lost.was_taking_part or self.me in partition.isr + partition.elr\n",
        "        may_be_member = self.me in partition.isr + partition.elr\n",
        Breaks.DURABILITY,
        (
            "unit/replica/losses/test_withdrawing.py::test_a_follower_that_is_in_neither_waits_too_for_it_may_be_proposed_already",
        ),
        ("… also if it is in neither, since its leader may have proposed it already",),
    ),
    Mutant(
        "what a replica fetched before it lost records counts",
        "controller/partition.py",
        " or counts_more(old, sets, rules) or wish.withdrawn\n",
        " or counts_more(old, sets, rules)\n",
        Breaks.DURABILITY,
        (
            "unit/controller/elections/test_withdrawals.py::test_a_proposal_by_what_it_had_before_is_of_an_earlier_leader_epoch",
        ),
        ("… and this change begins a leader epoch, so that its earlier fetches no",),
    ),
    Mutant(
        "a clean stop vouches for a file of epochs that somebody replaced while the broker ran",
        "log/files/stored_log.py",
        "        self.epoch_file.save_if_different()\n",
        "        self.save_begun_epoch()\n",
        Breaks.DURABILITY,
        (
            "unit/replica/storage/test_vouched.py::"
            "test_a_file_of_epochs_that_was_replaced_while_the_broker_ran_is_not_vouched_for",
        ),
    ),
)
