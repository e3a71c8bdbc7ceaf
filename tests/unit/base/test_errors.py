import warnings

from tests.rows import each

from strandline.base.errors import MESSAGES, ErrorCode, error_of, is_retriable, message_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import kafka.errors

OWN_CODES = 1000  # our own begin here
KAFKA_PYTHON = {
    cls.errno: cls
    for cls in vars(kafka.errors).values()
    if isinstance(cls, type) and issubclass(cls, kafka.errors.BrokerResponseError) and cls.errno is not None
}


def test_kafkas_numbers_are_dense_from_minus_one_to_136() -> None:
    assert [int(code) for code in ErrorCode if code < OWN_CODES] == list(range(-1, 137))


def test_our_own_numbers_lie_apart_and_fit_where_kafkas_do() -> None:
    assert {int(code): code.name for code in ErrorCode if code >= OWN_CODES} == {1000: "REQUEST_LIMIT_REACHED"}
    assert max(ErrorCode) < 2**15


def test_names_agree_with_kafka_python() -> None:
    compared = {number: cls.message for number, cls in KAFKA_PYTHON.items() if number in set(ErrorCode)}
    differing = {n: (ErrorCode(n).name, name) for n, name in compared.items() if ErrorCode(n).name != name}
    assert len(compared) > 100
    old_names = {-1, 0, 6, 10, 17, 39}  # kafka-python keeps names that Kafka has changed since
    assert differing.keys() <= old_names, differing


@each("code", ErrorCode)
def test_every_code_has_a_message_except_none(code: ErrorCode) -> None:
    text = message_of(code)
    assert (text == "") == (code is ErrorCode.NONE)
    assert not text or ((text[0].isupper() or text.startswith("acks")) and text.endswith("."))


def test_messages_are_given_for_known_codes_only() -> None:
    assert all(code in set(ErrorCode) for code in MESSAGES)


def test_an_unknown_number_is_an_unknown_server_error() -> None:
    assert error_of(31_000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert message_of(31_000) == message_of(-1)


def test_a_client_retries_what_passes_by_itself() -> None:
    assert is_retriable(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert is_retriable(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert is_retriable(ErrorCode.REQUEST_LIMIT_REACHED)
    assert not is_retriable(ErrorCode.INVALID_RECORD)
    assert not is_retriable(ErrorCode.NONE)
