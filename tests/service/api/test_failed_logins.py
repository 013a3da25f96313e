"""Failed logins: counted per address and minute, with bounded memory."""

import pytest

from counsel.service.api import failed_logins
from counsel.service.api.failed_logins import FREE, FailedLogins, delay_of, network_of


def test_the_first_failures_are_free_and_further_ones_wait_longer_and_longer():
    assert [delay_of(number) for number in (1, FREE)] == [0.0, 0.0]
    assert delay_of(FREE + 1) == pytest.approx(0.1)
    assert delay_of(FREE + 5) == pytest.approx(0.5)
    assert delay_of(FREE + 500) == 1.0


def test_failures_count_per_address_and_are_forgotten_after_a_minute():
    failed = FailedLogins()
    assert [failed.add("10.0.0.1", now=float(i)) for i in range(3)] == [1, 2, 3]
    assert failed.add("10.0.0.2", now=3.0) == 1
    assert failed.add("10.0.0.1", now=59.0) == 4
    assert failed.add("10.0.0.1", now=60.0) == 1


def test_no_number_of_addresses_fills_the_memory(monkeypatch):
    monkeypatch.setattr(failed_logins, "MOST_ADDRESSES", 50)
    failed = FailedLogins()
    for number in range(500):
        failed.add(f"10.0.{number // 250}.{number % 250}", now=1.0)
    assert len(failed) == 50
    assert failed.add("10.0.1.249", now=2.0) == 2  # the last one is remembered
    assert failed.add("10.0.0.0", now=2.0) == 1  # the first one is forgotten


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("x" * 100, "x" * 64),
    ],
)
def test_an_address_of_ipv6_stands_for_its_network(address, network):
    assert network_of(address) == network
