"""The test of paired differences by flipping their signs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evalcore.stats.sign_flip import sign_flip_p


@pytest.mark.parametrize("told", [[0.5, 0.25, -0.1, 0.3], [1.0] * 7, [0.2, -0.2, 0.4, 0.0, 0.1, -0.05]])
def test_few_differences_have_the_share_of_all_sign_flips_that_are_as_far_off(told: list[float]) -> None:
    some = [one for one in told if one]
    means = [
        abs(sum(s * one for s, one in zip(signs, some, strict=True))) for signs in product((1, -1), repeat=len(some))
    ]
    exact = sum(mean >= abs(sum(some)) - 1e-12 for mean in means) / len(means)
    assert sign_flip_p(np.array(told), seed=1) == pytest.approx(exact, abs=1e-9)


def test_the_same_seed_gives_the_same_digits_and_no_difference_is_no_evidence() -> None:
    many = np.array([0.1] * 40 + [-0.1] * 20)
    assert sign_flip_p(many, seed=7) == sign_flip_p(many, seed=7) < 0.05
    assert sign_flip_p(np.zeros(30), seed=7) == 1.0
    assert sign_flip_p(np.array([]), seed=7) == 1.0
    assert sign_flip_p(np.array([0.0, 0.5, 0.0]), seed=7) == 1.0


def test_differences_about_zero_are_called_as_often_as_the_level_says() -> None:
    rng = np.random.default_rng(3)
    called = sum(sign_flip_p(rng.choice([-0.25, 0.0, 0.25], 12), seed=1) <= 0.05 for _ in range(300))
    assert called <= 0.08 * 300
