"""Decisions at times of our choice, as if they had been asked for then."""

from concurrent.futures import Future

from counsel.service.core.decide import DecisionRequest


def decide_at(desk, episode, at, state, *, step=0, draw=0.5):
    """Decide on a step of an episode at a time; ``draw`` settles what is left to chance."""
    desk.plans.wait_for(episode.plan_key)
    done = Future()
    request = DecisionRequest(episode, desk.plans.of(episode.plan_key), step, state, draw, at)
    desk.committer.enqueue("decision", request, done)
    return done.result()
