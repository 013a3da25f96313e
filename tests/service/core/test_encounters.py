"""Encounters that last: their last episode is found with few queries, however many there were."""

import pytest

from counsel.service.core import encounters
from counsel.service.core.encounters import BATCH, FIRST, Encounter


@pytest.mark.parametrize("episodes", [*range(FIRST + 3), 63, 64, 65, 100, 4_095, 7_200, 1_000_003])
def test_the_episodes_of_a_long_encounter_are_counted_with_few_queries(monkeypatch, episodes):
    queries = []

    def look_up(_, encounter, parts):
        queries.append(parts := list(parts))
        return {encounter.request(part): "id" for part in parts if part < episodes}

    monkeypatch.setattr(encounters, "_ids", look_up)
    stay = Encounter("adviser", "ann", "encounter 1")
    assert encounters._episodes_so_far(None, stay) == episodes
    assert max(map(len, queries)) <= BATCH
    assert len(queries) == 1 if episodes < FIRST else len(queries) <= 5
