"""What is explored: how many brokers, which rules, which events. The rest of the model takes it from here."""

from strandline.base.value import Value

NONE, BALANCED, AGGRESSIVE = range(3)
ANY = (BALANCED, NONE, AGGRESSIVE)
STRATEGIES = ("None", "Balanced", "Aggressive")  # what each is called in unclean.recovery.strategy


class Setup(Value, frozen=True):
    """One partition on a few brokers. Perturbations are not limited: the states are finite without epochs."""

    brokers: int = 3
    min_isr: int = 2  # what min.insync.replicas is at first
    elr: bool = True  # eligible.leader.replicas.version
    replicas: int = 0  # of the partition at first; 0: every broker has one
    min_isrs: tuple[int, ...] = ()  # what min.insync.replicas may be changed to; empty: also one less than at first
    strategies: tuple[int, ...] = ANY  # values of unclean.recovery.strategy, the first of them at first
    managed: bool = False  # unclean.recovery.manager.enabled: recoveries elect whom they choose, and nothing else does
    by_hand: bool = True  # do operators elect uncleanly where nobody leads: whom they name, or anybody?
    directories: bool = False  # have brokers two log directories, of which one may be lost?
    torn: bool = False  # do brokers find that a replica lost records, at a start or while they run, and say so?
    shutdown: bool = True  # are there controlled shutdowns?
    unregister: bool = True  # are brokers given up for good?
    reassign: bool = True  # add, drop or swap one replica, and cancel that
    several: bool = False  # also any number of replicas at once
    redirect: bool = False  # also a reassignment in the middle of another, which it replaces
    fewest: int = 0  # replicas that a reassignment leaves at least; 0: as many as min ISR at first
    symmetry: bool = False  # brokers in like states are one state; see `state.py`
    reorder: bool = False  # are replicas put in another order? Implied by symmetry
    # May several brokers at once be shutting down, shut down or unregistered? What becomes of one depends on the others
    # only by their being active or not, and a fenced one stands for all that are not: their next start leads there, and
    # changes nothing else. So nothing new is reached, in many more states.
    crowded: bool = False
    # May the answer to a leader's proposal overtake the metadata log? Then the leader knows the ISR, and not yet the
    # min ISR or the end of a reassignment.
    leader_lags: bool = True
    # The expected exception, explored only if asked for: it has a counterexample. Without ELR the only member of an ISR
    # may lose its tail, and leads again all the same. KIP-966 exists to end that.
    last_standing: bool = False

    @property
    def size(self) -> int:
        return self.replicas or self.brokers

    @property
    def allowed_min_isrs(self) -> tuple[int, ...]:
        """Every value that min.insync.replicas may have."""
        return tuple(sorted({*(self.min_isrs or (max(1, self.min_isr - 1),)), self.min_isr}))

    @property
    def fewest_replicas(self) -> int:
        return self.fewest or self.min_isr

    @property
    def title(self) -> str:
        return f"{self.brokers}/{self.min_isr}"

    def limits(self) -> str:
        """One line that says what is in the model, for the header of a report."""
        how_many = "any number of replicas" if self.several else "one replica"
        replaced = " or replaced by another" if self.redirect else ""
        reassigned = f"{how_many} added, dropped or swapped, {self.fewest_replicas} at least; cancelled{replaced}"
        parts = [
            f"{self.brokers} brokers, {self.size} replicas at first, min ISR {self.min_isr}",
            f"ELR {'on' if self.elr else 'off'}",
            f"min ISR among {', '.join(map(str, self.allowed_min_isrs))}",
            f"strategy {' or '.join(STRATEGIES[s] for s in sorted(self.strategies))}",
            "recoveries managed" if self.managed else "no recovery managed",
            "unclean elections by hand" if self.by_hand else "none by hand",
            "a log directory of two may be lost" if self.directories else "",
            "fencing, registrations clean and unclean" + (", controlled shutdown" if self.shutdown else ""),
            "replicas that lost records, as their brokers say" if self.torn else "",
            "unregistration" if self.unregister else "",
            f"reassignment: {reassigned}" if self.reassign else "no reassignment",
            "one broker at a time" if (self.shutdown or self.unregister) and not self.crowded else "",
            "symmetry reduced" if self.symmetry else "reordering of replicas" if self.reorder else "",
            "LAST STANDING REPLICA MAY LOSE ITS TAIL" if self.last_standing else "",
            "leaders know the configuration at once" if self.elr and not self.leader_lags else "",
        ]
        return "; ".join(part for part in parts if part)


def usual(brokers: int, min_isr: int, elr: bool) -> Setup:
    """What is explored of a size in reasonable time. A broker that shuts down or is unregistered is to a partition one
    that is not active, so the larger sizes leave that to the smallest; the largest moves one replica at a time."""
    is_small, is_large = brokers <= 3, brokers >= 5
    return Setup(
        brokers=brokers,
        min_isr=min_isr,
        elr=elr,
        shutdown=is_small,
        unregister=is_small,
        several=not is_large,
        redirect=not is_large,
        symmetry=not is_small,
    )


SIZES = ((3, 2), (4, 2), (4, 3), (5, 3))


def ladder(elr: bool = True) -> tuple[Setup, ...]:
    """What is explored when nothing else is asked for."""
    return tuple(usual(brokers, min_isr, elr) for brokers, min_isr in SIZES)
