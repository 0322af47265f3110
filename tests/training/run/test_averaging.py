from __future__ import annotations

import pytest
import torch
from torch import nn

from besag.errors import BesagError
from besag.training.run.averaging import Averaging, blended


def module(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2)).to(dtype)
    made[1].bias.requires_grad_(False)
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_averages_are_their_recursion(dtype: torch.dtype) -> None:
    trained = module(dtype)
    averaging = Averaging(trained, 0.5)
    expected = trained[0].weight.detach().double()
    for step in range(1, 8):
        with torch.no_grad():
            trained[0].weight += torch.randn(2, 3).to(dtype)
        averaging.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * trained[0].weight.detach().double()
    average = averaging.state()["0.weight"]
    assert average.dtype == torch.float32
    torch.testing.assert_close(average.double(), expected, rtol=1e-5, atol=1e-6)


def test_they_are_swapped_in_and_out_again() -> None:
    trained = module()
    averaging = Averaging(trained, 0.9)
    with torch.no_grad():
        trained[0].weight += 1
    before = trained[0].weight.clone()
    with averaging.swapped_in():
        torch.testing.assert_close(trained[0].weight, before - 1)
    assert torch.equal(trained[0].weight, before)


def test_what_is_not_trained_is_not_averaged() -> None:
    assert "1.bias" not in Averaging(module(), 0.9).state()


def test_state_comes_back() -> None:
    one, other = Averaging(module(), 0.9), Averaging(module(), 0.9)
    with torch.no_grad():
        one.weights[0].add_(1)
    one.update(1)
    other.restore(one.state())
    assert all(torch.equal(a, b) for a, b in zip(one.averages, other.averages, strict=True))
    with pytest.raises(BesagError, match="not those of this network"):
        other.restore({"something": torch.zeros(1)})
    with pytest.raises(BesagError, match="between 0 and 1"):
        Averaging(module(), 1.0)


def test_between_two_and_back_again() -> None:
    module, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    before = {name: part.clone() for name, part in module.state_dict().items()}
    with blended(module, other.state_dict(), 0.25):
        for name, part in module.state_dict().items():
            torch.testing.assert_close(part, 0.75 * before[name] + 0.25 * other.state_dict()[name])
    torch.testing.assert_close(dict(module.state_dict()), before)


def test_the_mean_of_several_states_and_back_again() -> None:
    from besag.training.run.averaging import mean_of

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))  # it counts its batches, whole numbers
    before = {name: part.clone() for name, part in module.state_dict().items()}
    states = [{name: part + number for name, part in before.items()} for number in (1, 2, 6)]
    with mean_of(module, states):
        for name, part in module.state_dict().items():
            torch.testing.assert_close(part, before[name] + 3 if part.is_floating_point() else before[name])
    torch.testing.assert_close(dict(module.state_dict()), before)
    with mean_of(module, []):
        torch.testing.assert_close(dict(module.state_dict()), before)
