"""Every experiment, by name, in the order they are shown."""

from counsel.experiments.experiment import Experiment
from counsel.experiments.paper import (
    beyond,
    budget,
    car,
    equal_terms,
    fatigue,
    frontier,
    misjudged,
    penalty,
    regret,
    scaling,
    worlds,
)

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *regret.REGRET,
        equal_terms.EQUAL_TERMS,
        regret.ADHERENCE,
        penalty.VALUE_GAP,
        budget.LEARNING,
        budget.TRANSFER,
        penalty.TRAJECTORIES,
        car.REGRET,
        car.PENALTY,
        worlds.WORLDS,
        frontier.FRONTIER,
        beyond.BEYOND,
        misjudged.MISJUDGED,
        fatigue.FATIGUE,
        scaling.SCALING,
    )
}
