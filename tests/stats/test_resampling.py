"""The bootstrap by name: what each level draws, its variances against closed forms, its keys."""

import numpy as np
import pytest

from deadheat.errors import StatsError
from deadheat.stats.resampling import Level, bootstrap

Z = 1.959964


def generated(key: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.Generator(np.random.Philox(key=key)).standard_normal(shape)


@pytest.mark.parametrize("level", list(Level))
def test_the_same_key_gives_the_same_bytes_and_another_key_others(level: Level) -> None:
    table = generated(1, (3, 40))
    assert bootstrap(table, level, key=7, resamples=200) == bootstrap(table, level, key=7, resamples=200)
    assert bootstrap(table, level, key=7, resamples=200).low != bootstrap(table, level, key=8, resamples=200).low


def variances(table: np.ndarray) -> dict[Level, float]:
    """Exact variances of the resampled means.

    With multinomial weights, Var of a mean of m draws is the population variance over m. Crossed: seed draws w and item
    draws v are independent, E w_s w_t = (S(S−1) + S·[s=t])/S² and likewise for items, so
    E m² = Σ E[w w]·E[v v]·D·D / (SN)² over all pairs of cells.
    """
    num_seeds, num_items = table.shape

    def second(m: int) -> np.ndarray:
        return np.asarray((m - 1) / m + np.eye(m))

    crossed = np.einsum("sn,tm,st,nm->", table, table, second(num_seeds), second(num_items)) / table.size**2
    nested = table.mean(axis=1).var() / num_seeds + table.var(axis=1).mean() / (num_seeds * num_items)
    return {
        Level.CROSSED: float(crossed - table.mean() ** 2),
        Level.QUESTION: float(table.mean(axis=0).var() / num_items),
        Level.FLAT: float(table.var() / table.size),
        Level.NESTED: float(nested),
    }


@pytest.mark.parametrize("level", list(Level))
def test_each_level_has_the_width_of_its_exact_variance(level: Level) -> None:
    # Four seeds and a small seed effect: close enough to normal that the 95% width is 2·1.96 SD within 6%.
    table = generated(3, (4, 60)) + 0.1 * generated(4, (4, 1))
    found = bootstrap(table, level, key=11, resamples=20_000)
    assert (found.high - found.low) / (2 * Z) == pytest.approx(np.sqrt(variances(table)[level]), rel=0.06)


def test_missing_cells_leave_numerator_and_denominator() -> None:
    # Present cells: 1, 1, 0, 1 → ¾; the empty item is left out.
    found = bootstrap([[1.0, 1.0, np.nan], [0.0, 1.0, np.nan]], Level.QUESTION, key=1, resamples=500)
    assert (found.estimate, found.n, found.num_seeds) == (0.75, 2, 2)


def test_infinite_values_and_no_resample_are_refused() -> None:
    with pytest.raises(StatsError, match="finite"):
        bootstrap([[np.inf, 1.0]], key=1)
    with pytest.raises(StatsError, match="wanted at least 1"):
        bootstrap([[0.0, 1.0]], key=1, resamples=0)
