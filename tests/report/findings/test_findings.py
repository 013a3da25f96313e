"""Findings in words: numbers have their unit, interval and count, and verbs agree with numbers."""

import numpy as np
import pytest

from counsel.logs.adherence_breakdown import AdherenceBreakdown
from counsel.logs.bootstrap import ValueEstimate
from counsel.logs.check import Finding, LogCheck
from counsel.logs.law_test import LawTest
from counsel.logs.listening import Trend
from counsel.report import findings


def breakdown(lift=0.5, error=0.1):
    return AdherenceBreakdown(
        keys=("call",),
        given=np.array([1200.0]),
        matched=np.array([600.0]),
        known=np.array([1200.0]),
        anyway=np.array([300.0]),
        lift=np.array([lift]),
        error=np.array([error]),
    )


def check_of(*faults, people=None):
    return LogCheck(1, 1, people, 1, 1, 0, 0, ("wait", "call"), faults)


def test_a_log_and_its_verdict():
    size = "1 decision by 1 person in 1 episode of up to 1 decision, with 1 state and 2 actions"
    assert findings.log_size(check_of(people=1)) == size
    assert findings.check_verdict(check_of()) == "The log can be fitted."
    fault = Finding("action is empty", 3, fatal=True)
    assert "until 1 kind of fault is corrected" in findings.check_verdict(check_of(fault))
    assert "until 2 kinds of faults are corrected" in findings.check_verdict(check_of(fault, fault))


def test_how_much_people_listen():
    assert findings.overall_match_rate(breakdown()) == (
        "People match 50.0 % of the advice they see (95 % interval 47.2 to 52.8 %; 1,200 pieces)."
    )
    assert "50 % of the people" in findings.overall_lift(breakdown())
    assert "(95 % interval 30 to 70 %; 1,200 pieces)" in findings.overall_lift(breakdown())
    assert "unknown" in findings.overall_lift(breakdown(error=np.inf))
    assert findings.strongest_advice(breakdown()).startswith("“call” moves 50 % of the people")
    assert findings.strongest_advice(breakdown(error=np.inf)).endswith("is unknown")


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (0.3, "People listen more over time: lift +0.3 from the first to the last timestamp"),
        (-0.3, "People listen less over time: lift -0.3"),
        (0.05, "Whether people listen more or less over time cannot be told: lift +0.05"),
    ],
)
def test_trends(slope, words):
    p = 0.01 if abs(slope) > 0.1 else 0.3
    trend = Trend(breakdown(), np.array([0.0]), slope, slope - 0.1, slope + 0.1, p)
    sentence = findings.time_trend(trend)
    assert sentence.startswith(words)
    assert sentence.endswith(
        f"(95 % interval {slope - 0.1:+.2g} to {slope + 0.1:+.2g}; p = {p}; 1,200 pieces)"
    )


def test_the_adherence_law():
    told = {"refusals": 900, "cells": 3, "state": "calm", "advice": "call", "action": "wait"}
    holds, fails = (LawTest(p, **told, share=0.3, expected=0.2) for p in (0.4, 0.005))
    assert "cannot test" in findings.adherence_law(None)
    assert "as far as 900 refusals can show (p = 0.4)" in findings.adherence_law(holds)
    assert "30 % choose “wait” instead of the expected 20 %" in findings.adherence_law(fails)


def test_values_and_limitations():
    assert findings.value_interval(None) == "–"
    assert findings.value_interval(ValueEstimate(1.0, 0.5, 1.5)) == "1 [0.5, 1.5]"
    assert findings.added_value(ValueEstimate(1.0, -np.inf, np.inf)) == "+1 [too few episodes]"
    finding = Finding("states with few decisions", 2, fatal=False, examples=("calm", "busy"))
    assert findings.limitation(finding) == "States with few decisions (2; calm; busy)"
    assert findings.limitation(Finding("no advice", 0, fatal=False)) == "No advice"
