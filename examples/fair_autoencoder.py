"""
A fair autoencoder
==================

Pareto descent looks for a direction in which the total loss and all differences of disparities fall
together. Nothing in that asks for PCA, so here it trains a nonlinear autoencoder in PyTorch, with
:func:`fairpca.objectives.descent_direction`.

A group's *disparity* is its loss minus that of an autoencoder of the same shape that was trained on
the group alone. Both are local optima, unlike with PCA, so a disparity may be negative.

``python examples/fair_autoencoder.py --figure fair_autoencoder.png`` takes less than two minutes on
one core, and ``--quick`` a few seconds, with numbers that say nothing. It needs
``fairpca[gpu,plot]``.
"""  # noqa: D205, D400

import argparse
import copy
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from torch import nn

from fairpca import Equal, ExactSolver, GroupMoments, ParetoDescent, Problem
from fairpca.datasets import load_adult
from fairpca.objectives import descent_direction

parser = argparse.ArgumentParser(description="Train fair autoencoders and print what they lose.")
parser.add_argument("--quick", action="store_true", help="a few steps, to see that it runs")
parser.add_argument("--figure", metavar="FILE", help="where to save the figure")
options = parser.parse_args()
STEPS = 20 if options.quick else 400  # of each phase of a run
RATES = (0.02, 0.01)  # lengths of steps in the first phase and in later ones, for all methods
torch.set_num_threads(1)


# %%
# Losses by group
# ---------------
# Every objective here is made of the groups' losses, so by the chain rule its gradient is a
# combination of the groups' gradients. One backward pass for each group, over its own rows, is all
# that a step needs, however many pairs of groups there are.


def autoencoder(*sizes: int) -> Any:
    """Four linear layers; the hidden ones end in SiLU, the code in the middle does not."""
    layers = [nn.Linear(*pair) for pair in pairwise(sizes)]
    return nn.Sequential(layers[0], nn.SiLU(), *layers[1:3], nn.SiLU(), layers[3])


def losses_of(model: Any, groups: Sequence[Any]) -> Any:
    """Squared distance of rows from their reconstruction, averaged over each group's rows."""
    return torch.stack([(model(rows) - rows).square().sum(dim=1).mean() for rows in groups])


def objectives(disparities: Any, shares: Any) -> Any:
    """Total loss and half squared differences: their gradients in terms of the groups'."""
    k = len(disparities)
    first, second = torch.triu_indices(k, k, 1)
    pairs = torch.eye(k)[first] - torch.eye(k)[second]
    return torch.cat([shares[None], (pairs @ disparities)[:, None] * pairs])


# %%
# Four methods
# ------------
# Each takes the objectives, the disparities and the groups' gradients to a direction.


def plain(rows: Any, disparities: Any, gradients: Any) -> Any:
    """Lower the total loss alone."""
    return -rows[0] @ gradients


def pareto(rows: Any, disparities: Any, gradients: Any) -> Any:
    """Lower the total loss and every squared difference at once."""
    return descent_direction(rows @ gradients)[0]


def penalty(weight: float, rows: Any, disparities: Any, gradients: Any) -> Any:
    """Lower the total loss plus all half squared differences times a weight."""
    return -(rows[0] + weight * rows[1:].sum(dim=0)) @ gradients


def worst_off(rows: Any, disparities: Any, gradients: Any) -> Any:
    """Lower the largest disparity."""
    return -gradients[int(disparities.argmax())]


# %%
# A run has phases of equally many steps, each with a method. Most begin with a plain phase.

RUNS: dict[str, tuple[Callable[..., Any], ...]] = {
    "plain": (plain, plain),
    "plain, one phase more": (plain, plain, plain),
    "Pareto after plain": (plain, pareto),
    "Pareto from the start": (pareto, pareto),
    "penalty 0.3": (plain, partial(penalty, 0.3)),
    "penalty 3": (plain, partial(penalty, 3.0)),
    "penalty 30": (plain, partial(penalty, 30.0)),
    "worst-off group": (plain, worst_off),
}

# %%
# Training
# --------
# Batches have equally many rows of each group. They are too small to tell a difference of
# disparities, or even its sign, so losses and gradients are averaged over past steps *before* a
# method sees them. Its direction is then scaled by parameter, which for the plain method is Adam.
# Scaling turns the Pareto direction, so not every step lowers all objectives.


def train(start: Any, method: Any, data: Any, rate: float, batch: int | None, seed: int) -> Any:
    """Return a copy of the model after a phase; without `batch`, each step takes all rows."""
    torch.manual_seed(seed)
    model, (groups, own, shares) = copy.deepcopy(start), data
    parameters = list(model.parameters())
    point = nn.utils.parameters_to_vector(parameters).detach()
    losses: Any = 0.0
    gradients: Any = 0.0
    square: Any = 0.0
    for t in range(1, STEPS + 1):
        drawn = groups
        if batch is not None:
            drawn = [rows[torch.randint(len(rows), (batch,))] for rows in groups]
        now = losses_of(model, drawn)
        slopes = [torch.autograd.grad(x, parameters, retain_graph=True) for x in now]
        steep = torch.stack([nn.utils.parameters_to_vector(slope) for slope in slopes])
        memory = 0.0 if batch is None or t == 1 else 0.95
        losses = memory * losses + (1 - memory) * now.detach()
        gradients = 0.9 * gradients + 0.1 * steep
        direction = method(objectives(losses - own, shares), losses - own, gradients)
        square = 0.99 * square + 0.01 * direction**2
        scale = (square / (1 - 0.99**t)).sqrt() + 1e-8
        length = rate * min(1.0, 10 * t / STEPS) * (1 + np.cos(np.pi * t / STEPS)) / 2
        point = point + length * direction / scale
        nn.utils.vector_to_parameters(point, parameters)
    return model


def final_losses(model: Any, groups: Sequence[Any]) -> Any:
    """Each group's loss over all its rows."""
    with torch.no_grad():
        return losses_of(model, groups).double().numpy()


# %%
# A check: the linear autoencoder
# -------------------------------
# Without hidden layers the best autoencoder is PCA, and the exact solver knows the least total loss
# at any spread of the disparities. Of each group only the second moments matter, so a factor of
# them stands for its rows: fourteen rows, all in each step.

adult = load_adult(as_frame=False)
scaler = StandardScaler().fit(adult.data)
moments = GroupMoments.from_rows(scaler.transform(adult.data), adult.sensitive_features)
problem = Problem(moments, n_components=5)
roots = [np.linalg.cholesky(A + 1e-9 * np.eye(14)).T * np.sqrt(14) for A in problem.matrices]
factors = [torch.tensor(root).float() for root in roots]
known = (factors, *(torch.tensor(x).float() for x in (problem.own_losses, problem.weights)))


def show_linear(name: str, losses: Any) -> None:
    """Print a row, and how far it is above the least total loss at its spread."""
    total, spread = problem.weights @ losses, float(np.ptp(losses - problem.own_losses))
    exact = ExactSolver().solve(problem.with_criterion(Equal(spread)))
    above = total / (problem.weights @ exact.group_losses) - 1
    print(f"{name:<32}{total:8.4f}{spread:9.4f}{above:18.1e}")


print("Linear autoencoder, Adult by sex, 5 of 14 dimensions")
print(f"{'':<32}{'total':>8}{'spread':>9}{'above frontier':>18}")
show_linear("PCA", problem.group_losses(problem.pca_basis))
show_linear("ParetoDescent", ParetoDescent().solve(problem).group_losses)
for seed in range(1 if options.quick else 3):
    for name in ("plain", "Pareto after plain", "Pareto from the start"):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(14, 5, bias=False), nn.Linear(5, 14, bias=False))
        for method, rate in zip(RUNS[name], RATES, strict=True):
            model = train(model, method, known, rate, None, seed)
        show_linear(f"{name}, seed {seed}", final_losses(model, factors))

# %%
# The comparison
# --------------
# First the groups' own autoencoders, with two plain phases; then all runs.


def compare(
    parts_of: Callable[[int], Any], sizes: Sequence[int], batch: int | None, n_seeds: int
) -> dict[str, Any]:
    """For every run its disparities (seeds, parts, groups), total losses and ms a step."""
    found: dict[str, list[Any]] = {name: [] for name in RUNS}
    for seed in range(1 if options.quick else n_seeds):
        parts = parts_of(seed)
        torch.manual_seed(seed)
        start = autoencoder(*sizes)
        first, later = (partial(train, rate=rate, batch=batch, seed=seed) for rate in RATES)
        alone = []
        for group in zip(*parts, strict=True):
            data = (group[:1], torch.zeros(1), torch.ones(1))
            model = later(first(start, plain, data), plain, data)
            alone.append(final_losses(model, group))
        own = np.transpose(alone)
        shares = np.array([len(rows) for rows in parts[0]]) / sum(map(len, parts[0]))
        data = (parts[0], torch.tensor(own[0]).float(), torch.tensor(shares).float())
        begun = {method: first(start, method, data) for method in (plain, pareto)}
        for name, methods in RUNS.items():
            model, clock = begun[methods[0]], time.perf_counter()
            for method in methods[1:]:
                model = later(model, method, data)
            cost = 1000 * (time.perf_counter() - clock) / STEPS / len(methods[1:])
            losses = np.array([final_losses(model, part) for part in parts])
            found[name].append((losses - own, losses @ shares, cost))
    return {name: [np.array(x) for x in zip(*runs, strict=True)] for name, runs in found.items()}


def show(title: str, found: dict[str, Any], labels: Sequence[str]) -> None:
    """Print means over the seeds, and the standard deviation of spreads."""
    print(f"\n{title}: mean over {len(found['plain'][0])} seeds, ± standard deviation of spreads")
    for part, rows in enumerate(("training rows", "held-out rows")):
        names = "".join(f"{label:>8}" for label in labels)
        print(f"{rows:<22}{'total':>8}{'price':>8}{'spread':>16}{names}{'ms/step':>9}")
        for name, (disparities, totals, cost) in found.items():
            price = (totals / found["plain"][1])[:, part].mean() - 1
            spreads = np.ptp(disparities, axis=2)[:, part]
            values = "".join(f"{value:8.2f}" for value in disparities[:, part].mean(axis=0))
            print(
                f"{name:<22}{totals[:, part].mean():8.2f}{price:8.1%}{spreads.mean():9.3f}"
                f" ±{spreads.std():5.3f}{values}{cost.mean():9.2f}"
            )


# %%
# Adult by sex
# ------------
# Fourteen standardised columns, three numbers in the middle. Held-out rows are UCI's test part.

test, sexes = load_adult(subset="test", as_frame=False), ("Female", "Male")
people = [
    [torch.tensor(scaler.transform(part.data[part.sensitive_features == s])).float() for s in sexes]
    for part in (adult, test)
]
by_sex = compare(lambda seed: people, (14, 16, 3, 16, 14), batch=300, n_seeds=5)
show("Adult by sex", by_sex, sexes)

# %%
# Digits, one of them rare
# ------------------------
# Images of 1, 7 and 0 with 64 pixels from 0 to 1, four numbers in the middle. 120 ones, 120 sevens
# and 40 zeros are for training, the others are held out; the seed also chooses which.

images, targets = load_digits(return_X_y=True)


def digits(seed: int) -> list[tuple[Any, ...]]:
    """Rows for training and held-out rows of each digit."""
    rng = np.random.default_rng(seed)
    mixed = [torch.tensor(rng.permutation(images[targets == d]) / 16).float() for d in (1, 7, 0)]
    cut = [rows.tensor_split([n]) for rows, n in zip(mixed, (120, 120, 40), strict=True)]
    return list(zip(*cut, strict=True))


by_digit = compare(digits, (64, 16, 4, 16, 64), batch=None, n_seeds=3)
show("Digits", by_digit, ("1", "7", "0"))

# %%
# All runs
# --------
# Left is less loss, down is more equal. Each point is a run with another seed.

figure, axes = plt.subplots(2, 2, figsize=(9, 7), sharey="col", layout="constrained")
for column, (title, found) in enumerate((("Adult by sex", by_sex), ("Digits", by_digit))):
    for part, rows in enumerate(("training rows", "held-out rows")):
        ax = axes[part, column]
        for (name, (disparities, totals, _)), marker in zip(found.items(), "oxsD<v^P", strict=True):
            spreads = np.ptp(disparities, axis=2)[:, part]
            ax.scatter(totals[:, part], spreads, marker=marker, alpha=0.8, label=name)
        ax.set(title=f"{title}, {rows}", xlabel="total loss", ylabel="spread of disparities")
        ax.axhline(0.0, color="0.8", zorder=0)
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
if options.figure is not None:
    figure.savefig(options.figure, dpi=120)
