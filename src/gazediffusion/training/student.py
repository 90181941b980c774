"""A student: a network that makes windows in a few evaluations, distilled from a trained one.

A window is made by one estimate at each of a few levels, noised to the next level in between
(`diffusion.solvers: renoising`), so estimates must be samples rather than means. Two critics say
how they differ from recorded windows, both noised to the next level or above:

    matching        the difference of two scores, of the teacher and of a denoiser that is trained
                    on the student's windows alone (Yin et al. 2024); at high levels
    discriminator   trained to tell recorded from the student's windows, without the summary
                    statistics, by which it could know a recorded window; at the next level

The student's windows go from level to level, one a step: a step costs one evaluation with
gradients, and the student meets its own estimates.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.consistency import Consistency
from gazediffusion.models.discriminator import Discriminator, mean_softplus
from gazediffusion.models.representations import Joint
from gazediffusion.seeds import seed_for
from gazediffusion.training.batches import Batches
from gazediffusion.training.slots import Slots

_DRAWS = 5  # names the stream of random numbers
_BETAS = {"student": (0.5, 0.99), "imitator": (0.9, 0.99), "discriminator": (0.0, 0.99)}
_LAST = 0.02  # the discriminator's least noise: that of the sampler's last level
_ABOVE = 3.0  # its levels go from the next level to this many times the next level
_HIGHEST, _HIGHEST_LATER = 20.0, 10.0  # matched levels of the first estimate, and of later ones
_SMOOTH, _SMOOTHNESS = 0.05, 1.0  # noise that must not change a judgement, and the penalty
_N_NORMAL, _N_UNIFORM = 5, 3  # tensors of random numbers of a step


@dataclass(frozen=True)
class Distillation:
    """How a student is trained.

    levels: of noise, one evaluation each. n_steps: of the critics; the student is updated in every
    `n_critic`-th. group: windows at each level in a step. learning_rate, critic_rate: of the
    student and of the critics. lowest: level down to which scores are matched; below it the
    teacher's windows are told from recorded ones. average: decay of the averaged weights.
    """

    levels: tuple[float, ...] = (20.0, 4.0, 1.0, 0.3, 0.08)
    n_steps: int = 17_000
    group: int = 16
    learning_rate: float = 1e-4
    critic_rate: float = 2e-4
    n_critic: int = 2
    lowest: float = 1.0
    average: float = 0.999

    def __post_init__(self) -> None:
        if min(self.n_steps, self.group, self.n_critic) < 1:
            raise GazeError("`steps`, `batch_size` and `n_critic` must be 1 or more")
        if list(self.levels) != sorted(set(self.levels), reverse=True) or self.levels[-1] <= 0:
            raise GazeError(f"`levels` must decrease and be above 0, not {self.levels}")

    def to_json(self) -> dict[str, Any]:
        """All settings as plain values."""
        return asdict(self)


class Student:
    """The student, its average, the teacher, both critics and the step that updates them.

    parts: windows of the training participants. `compiled` and `captured` make a step fast on a
    GPU and change nothing else.
    """

    def __init__(
        self,
        teacher: Run,
        parts: Sequence[Windows],
        settings: Distillation,
        seed: int,
        device: torch.device,
        precision: str,
        *,
        compiled: bool = False,
        captured: bool = False,
    ) -> None:
        config = teacher.config
        assert isinstance(config.representation, Joint)
        self.settings, self.seed, self.device, self.precision = settings, seed, device, precision
        self.recipe, self.process = config.recipe, config.recipe.edm
        recipe = replace(config.recipe, batch_size=settings.group)
        self.batches = Batches(parts, replace(config, recipe=recipe), seed, device)
        self.n_windows = self.batches.batch_size * len(settings.levels)
        self.consistency = Consistency(config.representation, config.length, device)
        network = teacher.network.float().to(device)
        self.teacher = copy.deepcopy(network).eval().requires_grad_(False)
        self.average = copy.deepcopy(self.teacher)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            discriminator = Discriminator(copy.deepcopy(network).cpu())
        self.networks: dict[str, nn.Module] = {
            "student": copy.deepcopy(network).train().requires_grad_(True),
            "imitator": copy.deepcopy(network).train().requires_grad_(True),
            "discriminator": discriminator.to(device).requires_grad_(True),
        }
        self.rates = {name: torch.zeros((), device=device) for name in self.networks}
        self.average_weight = torch.zeros((), device=device)
        on_gpu = device.type == "cuda"
        self.optimizers = {
            name: torch.optim.AdamW(
                one.parameters(),
                lr=self.rates[name],
                betas=_BETAS[name],
                weight_decay=0.0,
                capturable=on_gpu,
                fused=on_gpu,
            )
            for name, one in self.networks.items()
        }
        self._forward: dict[str, Any] = {
            name: torch.compile(one, dynamic=False) if compiled else one
            for name, one in self.networks.items()
        }
        self._tabulate()
        n_levels = len(settings.levels)
        first = [self._windows(number) for number in range(n_levels)]
        self.slots = Slots(first, settings.levels)
        self.generator = torch.Generator(device=device)
        shape = self.slots.x.shape
        self._normal = torch.zeros(_N_NORMAL, *shape, device=device)
        self._uniform = torch.zeros(_N_UNIFORM, self.n_windows, device=device)
        # Of the gradients of both critics at each level, smoothed.
        self.sizes = torch.full((2, n_levels), 1e-6, device=device)
        self.recognised = torch.zeros((2, n_levels), device=device)
        self._captured = captured
        self._steps: tuple[Callable[[], None], ...] | None = None

    def _tabulate(self) -> None:
        """Levels of each window, and what a conditioning vector has of the statistics."""
        levels, lowest = self.settings.levels, self.settings.lowest
        after = (*levels[1:], _LAST)
        # Weights of the matched scores and of the discriminator: coarse levels are the teacher's.
        matching = [0.5 if level < 0.1 else 1.0 for level in after]
        judging = [2.0 if level < 0.1 else 0.5 if level >= 4.0 else 1.0 for level in after]
        highest = [_HIGHEST if level >= 4.0 else _HIGHEST_LATER for level in after]
        n = self.batches.batch_size
        rows = (levels, after, [max(level, lowest) for level in after], highest, matching)
        table = torch.tensor(rows, device=self.device).repeat_interleave(n, dim=1)
        self.sigma, self.after, self.low, self.high, self.matching = table
        self.judging = torch.tensor(judging, device=self.device)
        conditioning = self.batches.conditioning
        is_hidden = torch.zeros(conditioning.width, dtype=torch.bool)
        if conditioning.prior is not None:
            for part in ("statistics", "statistics_known"):
                is_hidden[conditioning.columns(part)] = True
        self.is_hidden = is_hidden.to(self.device)

    def _windows(self, number: int) -> tuple[Tensor, ...]:
        """Channels, noise, condition, sequences and where errors count, of a training batch."""
        x0, _, eps, *given = self.batches.at(number)
        n = self.recipe.gaze_channels
        x0, eps = x0[:, :n], eps[:, :n]
        if self.recipe.is_steerable:
            condition, sequences, counts = given
            return x0, eps, condition, sequences, counts[:, :n]
        none = x0.new_zeros(len(x0), 0, x0.shape[-1])
        return x0, eps, given[0], none, torch.ones_like(x0)

    def step(self, number: int, rate: float, average_weight: float) -> None:
        """The number-th step, with learning rates multiplied by `rate`."""
        settings = self.settings
        if self._captured and self._steps is None:
            self._steps = self._recorded()
        for name, held in self.rates.items():
            is_student = name == "student"
            # Critics keep up to the end.
            share = rate if is_student else max(rate, 0.2)
            held.fill_((settings.learning_rate if is_student else settings.critic_rate) * share)
        self.average_weight.fill_(average_weight)
        self.slots.put(self._windows(number + len(settings.levels)))
        self.generator.manual_seed(seed_for(self.seed, _DRAWS, number))
        self._normal.normal_(generator=self.generator)
        self._uniform.uniform_(generator=self.generator)
        steps = self._steps or (self._only_critics, self._all)
        steps[self.updates_student(number)]()

    def updates_student(self, number: int) -> bool:
        """Whether the number-th step updates the student."""
        return number % self.settings.n_critic == self.settings.n_critic - 1

    def _only_critics(self) -> None:
        with torch.no_grad():
            clean = self._generated(self.networks["student"])
        self._update_critics(clean)
        self.slots.advance(clean)

    def _all(self) -> None:
        clean = self._generated(self._forward["student"])
        self._update_critics(clean.detach())
        self._update_student(clean)
        self.slots.advance(clean.detach())

    def _generated(self, network: Any) -> Tensor:
        """Estimates (window, channel, time) of the student, given samples in their places."""
        clean = self._denoised(network, self.slots.x, self.sigma)
        return torch.where(self.slots.counts > 0, clean, self.slots.real)

    def _denoised(self, network: Any, x: Tensor, sigma: Tensor) -> Tensor:
        n = self.recipe.network.channels - x.shape[1]
        with self._autocast():
            clean = self.process.denoise(
                network, functional.pad(x, (0, 0, 0, n)), sigma, *self._given()
            )
        return clean[:, : x.shape[1]].float()

    def _given(self, n_times: int = 1, is_hidden: bool = False) -> tuple[Tensor, ...]:
        """What the windows are given; without the statistics if hidden."""
        condition = self.slots.condition
        if is_hidden:
            condition = condition.masked_fill(self.is_hidden, 0.0)
        given = (condition, self.slots.sequences)[: 1 + self.recipe.is_steerable]
        return tuple(one.repeat(n_times, *[1] * (one.ndim - 1)) for one in given)

    def _judged(self, *noisy: Tensor, sigma: Tensor) -> list[Tensor]:
        """The discriminator's logits of sets of windows noised to sigma (window,)."""
        x, sigma = torch.cat(noisy), sigma.repeat(len(noisy))
        total = (sigma.square() + self.process.sigma_data**2).sqrt()[:, None, None]
        x = functional.pad(x / total, (0, 0, 0, self.recipe.network.channels - x.shape[1]))
        level = self.process.embedded(sigma)
        with self._autocast():
            found: list[Tensor] = self._forward["discriminator"](
                x, level, *self._given(len(noisy), is_hidden=True)
            )
        return found

    def _matched_level(self, uniform: Tensor) -> Tensor:
        """Log-uniform between the lowest and the highest matched level of each window."""
        level: Tensor = self.low * (self.high / self.low) ** uniform
        return level

    def _decodable(self, clean: Tensor) -> Tensor:
        """The windows at the last level as gaze is: decoded and encoded again."""
        n = self.slots.n_new
        is_known = self.slots.counts[-n:, 0] == 0
        return torch.cat([clean[:-n], self.consistency(clean[-n:], is_known)])

    def _update_critics(self, clean: Tensor) -> None:
        slots, normal, uniform = self.slots, self._normal, self._uniform
        sigma = self._matched_level(uniform[0])
        level = sigma[:, None, None]
        estimate = self._denoised(self._forward["imitator"], clean + level * normal[0], sigma)
        s = self.process.sigma_data
        weight = (sigma.square() + s**2) / (sigma * s).square()
        error = ((estimate - clean).square() * slots.counts).mean(dim=(1, 2)) / self._share()
        self._descend("imitator", (weight * error).mean())
        tau = self.after * _ABOVE ** uniform[1]
        level = tau[:, None, None]
        real, fake = (
            slots.real + level * normal[1],
            self._decodable(clean) + level * normal[2],
        )
        # A penalty on judgements that noise changes (R1, by finite differences).
        nearby = real + _SMOOTH * (level.square() + s**2).sqrt() * normal[3]
        logits = self._judged(real, fake, nearby, sigma=tau)
        of_real, of_fake, of_nearby = zip(*(one.chunk(3) for one in logits), strict=True)
        loss = (mean_softplus(list(of_real), -1.0) + mean_softplus(list(of_fake), 1.0)).mean()
        changes = [
            (a.float() - b.float()).square().mean() for a, b in zip(of_real, of_nearby, strict=True)
        ]
        self._descend("discriminator", loss + _SMOOTHNESS * torch.stack(changes).mean())
        shares = [self._by_level(of_real[-1] > 0), self._by_level(of_fake[-1] < 0)]
        self.recognised.copy_(torch.stack(shares))

    def _share(self) -> Tensor:
        """Of each window, what is generated."""
        return self.slots.counts.mean(dim=(1, 2)).clamp_min(0.1)

    def _descend(self, name: str, loss: Tensor) -> None:
        self.optimizers[name].zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizers[name].step()

    def _update_student(self, clean: Tensor) -> None:
        """One step along both critics' gradients; clean has its graph."""
        counts, x = self.slots.counts, clean.detach()
        with torch.no_grad():
            sigma = self._matched_level(self._uniform[0])
            noisy = x + sigma[:, None, None] * self._normal[4]
            good = self._denoised(self.teacher, noisy, sigma)
            bad = self._denoised(self.networks["imitator"], noisy, sigma)
            size = ((x - good).abs() * counts).mean(dim=(1, 2)) / self._share()
            matching = (bad - good) * counts / size.clamp_min(1e-3)[:, None, None]
        given = x.requires_grad_()
        tau = self.after * _ABOVE ** self._uniform[2]
        judge = self.networks["discriminator"].requires_grad_(False)
        noise = tau[:, None, None] * self._normal[3]
        logits = self._judged(self._decodable(given) + noise, sigma=tau)
        (judging,) = torch.autograd.grad(mean_softplus(logits, -1.0).sum(), given)
        judge.requires_grad_(True)
        judging = judging * counts
        sizes = [
            self._by_level(one.square().mean(dim=(1, 2)).sqrt()) for one in (matching, judging)
        ]
        self.sizes.lerp_(torch.stack(sizes), 0.02)
        # The discriminator's gradient is brought to the size of the other at each level.
        scale = self.judging * self.sizes[0] / self.sizes[1].clamp_min(1e-6)
        scale = scale.repeat_interleave(self.slots.n_new)[:, None, None]
        gradient = self.matching[:, None, None] * matching + scale * judging
        optimizer = self.optimizers["student"]
        optimizer.zero_grad(set_to_none=True)
        clean.backward(gradient * (x.shape[1] / gradient.numel()))  # type: ignore[no-untyped-call]
        parameters: Any = list(self.networks["student"].parameters())
        torch.nn.utils.clip_grad_norm_(parameters, self.recipe.gradient_clip, foreach=True)
        optimizer.step()
        with torch.no_grad():
            averages: Any = list(self.average.parameters())
            moved: Any = torch._foreach_sub(parameters, averages)
            torch._foreach_mul_(moved, self.average_weight)
            torch._foreach_add_(averages, moved)

    def _by_level(self, values: Tensor) -> Tensor:
        """The mean at each level of values by window."""
        return values.detach().float().reshape(len(self.settings.levels), -1).mean(dim=1)

    def _recorded(self) -> tuple[Callable[[], None], ...]:
        """Both steps as CUDA graphs; weights and windows stay as they were."""
        kept = {name: tensor.clone() for name, tensor in self.state().items()}
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._only_critics()
                self._all()
        torch.cuda.current_stream().wait_stream(side)
        replays = []
        for step in (self._only_critics, self._all):
            for optimizer in self.optimizers.values():
                optimizer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            replays.append(graph.replay)
        self.load(kept)
        return tuple(replays)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bf16"
        )

    def state(self) -> dict[str, Tensor]:
        """Everything that a step changes, by name; live tensors, not copies."""
        tensors = {f"average.{name}": p.data for name, p in self.average.named_parameters()}
        for kind, network in self.networks.items():
            for name, parameter in network.named_parameters():
                tensors[f"{kind}.{name}"] = parameter.data
                for key, value in self.optimizers[kind].state.get(parameter, {}).items():
                    tensors[f"{key}.{kind}.{name}"] = value
        tensors |= {f"slots.{name}": tensor for name, tensor in self.slots.state().items()}
        return tensors | {"sizes": self.sizes}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `state` gave, in place, so that a captured graph sees it."""
        for name, parameter in self.average.named_parameters():
            parameter.copy_(tensors[f"average.{name}"])
        for kind, network in self.networks.items():
            for name, parameter in network.named_parameters():
                parameter.copy_(tensors[f"{kind}.{name}"])
                held = self.optimizers[kind].state[parameter]
                for key in ("step", "exp_avg", "exp_avg_sq"):
                    saved = tensors.get(f"{key}.{kind}.{name}")
                    if key in held:
                        held[key].copy_(saved) if saved is not None else held[key].zero_()
                    elif saved is not None:
                        is_host = key == "step" and self.device.type == "cpu"
                        held[key] = saved.clone().to("cpu" if is_host else self.device)
        for name, tensor in self.slots.state().items():
            tensor.copy_(tensors[f"slots.{name}"])
        self.sizes.copy_(tensors["sizes"])
