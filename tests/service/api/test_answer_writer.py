"""Heads of answers are written together with what follows them."""

import pytest

from counsel.service.api.answer_writer import CONTINUE, AnswerWriter


class Transport:
    """Keeps what is written."""

    def __init__(self):
        self.parts, self.is_closed = [], False

    def write(self, data):
        self.parts.append(data)

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


@pytest.fixture
def transport():
    return Transport()


def test_a_head_is_written_with_the_first_part_of_its_body(transport):
    writer = AnswerWriter(transport)
    for part in (b"head", b"one", b"two"):
        writer.write(part)
    assert transport.parts == [b"headone", b"two"]


def test_the_leave_to_send_a_body_does_not_wait(transport):
    writer = AnswerWriter(transport)
    writer.write(CONTINUE)
    writer.write(b"head")
    assert transport.parts == [CONTINUE]


def test_a_head_that_nothing_follows_is_written_at_the_end(transport):
    writer = AnswerWriter(transport)
    writer.write(b"head")
    writer.flush()
    writer.flush()
    assert transport.parts == [b"head"]


def test_a_head_is_written_before_the_connection_is_closed(transport):
    writer = AnswerWriter(transport)
    writer.write(b"head")
    writer.close()
    assert transport.parts == [b"head"]
    assert writer.is_closing()
