"""Programs that practitioners write with torch: they get data and models through ``t``, and return what to compare."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import distributions as dist
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import SWALR, AveragedModel

PROGRAMS: dict[str, Callable[[Any], list[Any]]] = {}


def program(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    PROGRAMS[function.__name__] = function
    return function


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def make_x() -> torch.Tensor:
    return torch.randn(12, 4)


def make_y() -> torch.Tensor:
    return torch.randint(0, 3, (12,))


def params(m: nn.Module) -> list[Any]:
    return list(m.state_dict().values())


def fit(model: Any, x: Any, y: Any, optimizer: Any, steps: int = 3, after: Any = None) -> list[Any]:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if after:
            after()
    return [loss, *params(model)]


@program
def one_cycle(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.Adam(m.parameters())
    s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=5)
    return fit(m, t.send(make_x()), t.send(make_y()), o, after=s.step)


@program
def ema_lerp(t: Any) -> list[Any]:
    m = t.model(net())
    avg = [p.detach().clone() for p in m.parameters()]
    o = torch.optim.Adam(m.parameters())
    return (
        fit(
            m,
            t.send(make_x()),
            t.send(make_y()),
            o,
            after=lambda: torch._foreach_lerp_(avg, [p.detach() for p in m.parameters()], 0.1),
        )
        + avg
    )


@program
def swa(t: Any) -> list[Any]:
    m = t.model(net())
    a = AveragedModel(m)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    s = SWALR(o, 0.05)

    def after():
        a.update_parameters(m)
        s.step()

    return fit(m, t.send(make_x()), t.send(make_y()), o, after=after) + list(a.module.state_dict().values())


@program
def weight_norm(t: Any) -> list[Any]:
    m = nn.Sequential(torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 3))
    m = t.model(m)
    return fit(m, t.send(make_x()), t.send(make_y()), torch.optim.Adam(m.parameters()))


@program
def spectral_norm(t: Any) -> list[Any]:
    m = nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 3))
    m = t.model(m)
    return fit(m, t.send(make_x()), t.send(make_y()), torch.optim.Adam(m.parameters()))


@program
def orthogonal(t: Any) -> list[Any]:
    m = nn.Sequential(torch.nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 3))
    m = t.model(m)
    return fit(m, t.send(make_x()), t.send(make_y()), torch.optim.SGD(m.parameters(), lr=0.1))


@program
def custom_parametrization(t: Any) -> list[Any]:
    class Sym(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).transpose(-1, -2)

    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
    torch.nn.utils.parametrize.register_parametrization(m[0], "weight", Sym())
    m = t.model(m)
    return fit(m, t.send(make_x()), t.send(make_y()), torch.optim.SGD(m.parameters(), lr=0.1))


@program
def vae(t: Any) -> list[Any]:
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Linear(4, 4)
            self.d = nn.Linear(2, 4)

        def forward(self, x):
            mu, lv = self.e(x).chunk(2, -1)
            z = mu + torch.randn_like(mu) * (lv / 2).exp()
            return functional.mse_loss(self.d(z), x) - 0.5 * (1 + lv - mu**2 - lv.exp()).sum(1).mean()

    m = t.model(VAE())
    o = torch.optim.Adam(m.parameters())
    x = t.send(make_x())
    for _ in range(3):
        o.zero_grad()
        loss = m(x)
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def vae_distributions(t: Any) -> list[Any]:
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Linear(4, 4)
            self.d = nn.Linear(2, 4)

        def forward(self, x):
            mu, lv = self.e(x).chunk(2, -1)
            q = dist.Independent(dist.Normal(mu, lv.exp(), validate_args=False), 1, validate_args=False)
            p = dist.Independent(
                dist.Normal(torch.zeros_like(mu), torch.ones_like(mu), validate_args=False), 1, validate_args=False
            )
            z = q.rsample()
            return (
                dist.kl_divergence(q, p) - dist.Normal(self.d(z), 1.0, validate_args=False).log_prob(x).sum(-1)
            ).mean()

    m = t.model(VAE())
    o = torch.optim.Adam(m.parameters())
    x = t.send(make_x())
    for _ in range(3):
        o.zero_grad()
        loss = m(x)
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def gan(t: Any) -> list[Any]:
    g, d = t.model(nn.Linear(2, 4)), t.model(nn.Linear(4, 1))
    og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
    x = t.send(make_x())
    bce = nn.BCEWithLogitsLoss()
    for _ in range(3):
        z = t.send(torch.randn(12, 2))
        fake = g(z)
        od.zero_grad()
        ld = bce(d(x), torch.ones_like(d(x))) + bce(d(fake.detach()), torch.zeros_like(d(x)))
        ld.backward()
        od.step()
        og.zero_grad()
        lg = bce(d(fake), torch.ones_like(d(x)))
        lg.backward()
        og.step()
    return [ld, lg, *params(g), *params(d)]


@program
def wgan_penalty(t: Any) -> list[Any]:
    d = t.model(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)))
    o = torch.optim.Adam(d.parameters())
    x = t.send(make_x())
    f = t.send(make_x())
    for _ in range(2):
        mix = (0.3 * x + 0.7 * f).detach().requires_grad_()
        (gr,) = torch.autograd.grad(d(mix).sum(), mix, create_graph=True)
        loss = d(f).mean() - d(x).mean() + 10 * ((gr.norm(2, 1) - 1) ** 2).mean()
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(d)]


@program
def reinforce(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.Adam(m.parameters())
    s = t.send(make_x())
    for _ in range(2):
        policy = dist.Categorical(logits=m(s), validate_args=False)
        a = policy.sample()
        r = (a == 1).float()
        loss = -(policy.log_prob(a) * (r - r.mean())).mean() - 0.01 * policy.entropy().mean()
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def dqn(t: Any) -> list[Any]:
    q = t.model(net())
    target = copy.deepcopy(q)
    o = torch.optim.Adam(q.parameters())
    s, s2 = t.send(make_x()), t.send(make_x())
    a, r = t.send(make_y()), t.send(torch.randn(12))
    for _ in range(3):
        with torch.no_grad():
            y = r + 0.9 * target(s2).max(1).values
        loss = functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
        o.zero_grad()
        loss.backward()
        o.step()
        target.load_state_dict(q.state_dict())
    return [loss, *params(q), *params(target)]


@program
def distillation(t: Any) -> list[Any]:
    teacher, m = t.model(net()).eval(), t.model(net())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    x, y = t.send(make_x()), t.send(make_y())
    for _ in range(3):
        with torch.no_grad():
            soft = functional.softmax(teacher(x) / 2, -1)
        loss = functional.kl_div(
            functional.log_softmax(m(x) / 2, -1), soft, reduction="batchmean"
        ) * 4 + functional.cross_entropy(m(x), y)
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def clip_norm(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    x, y = t.send(make_x()), t.send(make_y())
    norms = []
    for _ in range(3):
        o.zero_grad()
        functional.cross_entropy(m(x), y).backward()
        norms.append(nn.utils.clip_grad_norm_(m.parameters(), 0.1))
        o.step()
    return norms + params(m)


@program
def accumulation(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.AdamW(m.parameters())
    x, y = t.send(make_x()), t.send(make_y())
    for step in range(6):
        part = slice(step % 3 * 4, step % 3 * 4 + 4)
        (functional.cross_entropy(m(x[part]), y[part]) / 3).backward()
        if step % 3 == 2:
            o.step()
            o.zero_grad(set_to_none=False)
    return params(m)


@program
def autocast(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    x, y = t.send(make_x()), t.send(make_y())
    for _ in range(3):
        o.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = functional.cross_entropy(m(x).float(), y)
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def bfloat16(t: Any) -> list[Any]:
    m = t.model(net().bfloat16())
    return fit(m, t.send(make_x().bfloat16()), t.send(make_y()), torch.optim.SGD(m.parameters(), lr=0.1))


@program
def functional_call(t: Any) -> list[Any]:
    m = t.model(net())
    x = t.send(make_x())
    other = {n: p * 1.5 for n, p in m.named_parameters()}
    return [torch.func.functional_call(m, other, (x,))]


@program
def maml(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    x, y = t.send(make_x()), t.send(make_y())
    for _ in range(2):
        w = dict(m.named_parameters())
        loss = functional.cross_entropy(torch.func.functional_call(m, w, (x[:6],)), y[:6])
        g = torch.autograd.grad(loss, list(w.values()), create_graph=True)
        w = {n: p - 0.1 * d for (n, p), d in zip(w.items(), g, strict=False)}
        loss = functional.cross_entropy(torch.func.functional_call(m, w, (x[6:],)), y[6:])
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def jacobian(t: Any) -> list[Any]:
    x = t.send(torch.randn(3))
    return [torch.autograd.functional.jacobian(lambda v: torch.stack([v.sum(), (v**2).sum()]), x)]


@program
def hessian(t: Any) -> list[Any]:
    x = t.send(torch.randn(3))
    return [torch.autograd.functional.hessian(lambda v: (v**3).sum(), x)]


@program
def loader(t: Any) -> list[Any]:
    m = t.model(net())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(t.send(make_x()), t.send(make_y()))
    g = torch.Generator().manual_seed(3)
    for _ in range(2):
        for x, y in torch.utils.data.DataLoader(data, 5, shuffle=True, generator=g):
            o.zero_grad()
            functional.cross_entropy(m(x), y).backward()
            o.step()
    return params(m)


@program
def metrics(t: Any) -> list[Any]:
    m = t.model(net())
    x, y = t.send(make_x()), t.send(make_y())
    p = m(x).argmax(1)
    conf = torch.stack([torch.stack([((p == i) & (y == j)).sum() for j in range(3)]) for i in range(3)])
    prec = conf.diagonal() / conf.sum(1).clamp(min=1)
    rec = conf.diagonal() / conf.sum(0).clamp(min=1)
    return [
        (p == y).float().mean(),
        conf,
        prec,
        rec,
        2 * prec * rec / (prec + rec).clamp(min=1e-9),
        m(x).topk(2).indices.eq(y[:, None]).any(1).float().mean(),
    ]


@program
def auc(t: Any) -> list[Any]:
    s, y = t.send(torch.rand(12)), t.send(torch.randint(0, 2, (12,)).float())
    order = s.argsort(descending=True)
    tp = y[order].cumsum(0)
    fp = (1 - y[order]).cumsum(0)
    return [torch.trapezoid(tp / tp[-1], fp / fp[-1])]


@program
def kfold(t: Any) -> list[Any]:
    x, y = t.send(make_x()), t.send(make_y())
    out = []
    for k in range(3):
        torch.manual_seed(k)
        m = t.model(net())
        held = torch.arange(12) % 3 == k
        fit(m, x[~held], y[~held], torch.optim.SGD(m.parameters(), lr=0.1))
        out.append((m(x[held]).argmax(1) == y[held]).float().mean())
    return [torch.stack(out).mean()]


@program
def transformer(t: Any) -> list[Any]:
    m = t.model(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), 1))
    x = t.send(torch.randn(2, 5, 4))
    mask = t.send(torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]]).bool())
    loss = m(x, src_key_padding_mask=mask).sum()
    loss.backward()
    return [loss, *[p.grad for p in m.parameters()]]


@program
def gnn(t: Any) -> list[Any]:
    x = t.send(torch.randn(5, 4))
    src, dst = t.send(torch.tensor([0, 1, 2, 3])), t.send(torch.tensor([1, 2, 3, 4]))
    m = t.model(nn.Linear(4, 4))
    h = torch.zeros_like(x).index_add(0, dst, m(x)[src])
    deg = torch.zeros_like(x[:, 0]).scatter_add(0, dst, torch.ones_like(dst, dtype=torch.float))
    loss = (h / deg.clamp(min=1)[:, None]).sum()
    loss.backward()
    return [loss, *[p.grad for p in m.parameters()]]


@program
def mixup(t: Any) -> list[Any]:
    m = t.model(net())
    x, y = t.send(make_x()), t.send(make_y())
    perm = torch.randperm(12)
    lam = 0.3
    loss = lam * functional.cross_entropy(m(lam * x + (1 - lam) * x[perm]), y) + (1 - lam) * functional.cross_entropy(
        m(lam * x + (1 - lam) * x[perm]), y[perm]
    )
    loss.backward()
    return [loss, *[p.grad for p in m.parameters()]]


@program
def fisher(t: Any) -> list[Any]:
    m = t.model(net())
    x, y = t.send(make_x()), t.send(make_y())
    f = [torch.zeros_like(p) for p in m.parameters()]
    for i in range(4):
        m.zero_grad()
        functional.cross_entropy(m(x[i : i + 1]), y[i : i + 1]).backward()
        for a, p in zip(f, m.parameters(), strict=False):
            a += p.grad**2
    return f


@program
def fedavg(t: Any) -> list[Any]:
    ms = [t.model(net()) for _ in range(3)]
    x, y = t.send(make_x()), t.send(make_y())
    for m in ms:
        fit(m, x, y, torch.optim.SGD(m.parameters(), lr=0.1), 1)
    avg = {n: torch.stack([m.state_dict()[n] for m in ms]).mean(0) for n in ms[0].state_dict()}
    ms[0].load_state_dict(avg)
    return params(ms[0])


@program
def pca(t: Any) -> list[Any]:
    x = t.send(make_x())
    x = x - x.mean(0)
    _, s, vh = torch.linalg.svd(x, full_matrices=False)
    return [s, (x @ vh[:2].T).abs()]


@program
def kmeans(t: Any) -> list[Any]:
    x = t.send(make_x())
    c = x[:3]
    for _ in range(3):
        a = torch.cdist(x, c).argmin(1)
        one = functional.one_hot(a, 3).float()
        c = (one.T @ x) / one.sum(0).clamp(min=1)[:, None]
    return [c, a]


@program
def ridge(t: Any) -> list[Any]:
    x, y = t.send(make_x()), t.send(torch.randn(12))
    return [torch.linalg.solve(x.T @ x + 0.1 * t.send(torch.eye(4)), x.T @ y)]


@program
def dropout_mc(t: Any) -> list[Any]:
    m = t.model(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))).train()
    x = t.send(make_x())
    p = torch.stack([m(x) for _ in range(4)])
    return [p.mean(0), p.var(0)]


@program
def gaussian_process(t: Any) -> list[Any]:
    x, y = t.send(torch.randn(6, 1)), t.send(torch.randn(6))
    k = (-(torch.cdist(x, x) ** 2)).exp() + 0.1 * torch.diag_embed(torch.ones_like(y))
    factor = torch.linalg.cholesky(k)
    return [torch.cholesky_solve(y[:, None], factor), factor.diagonal().log().sum()]


@program
def attention_masked(t: Any) -> list[Any]:
    q = t.send(torch.randn(2, 5, 4))
    mask = t.send(torch.ones(5, 5).tril().bool())
    return [
        functional.scaled_dot_product_attention(q, q, q, attn_mask=mask),
        functional.scaled_dot_product_attention(q, q, q, is_causal=True),
    ]


@program
def hooks(t: Any) -> list[Any]:
    m = t.model(net())
    seen = []
    m[1].register_forward_hook(lambda mod, i, o: seen.append(o.mean()))
    m[0].register_full_backward_hook(lambda mod, gi, go: seen.append(go[0].norm()))
    functional.cross_entropy(m(t.send(make_x())), t.send(make_y())).backward()
    return seen


@program
def tied(t: Any) -> list[Any]:
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(7, 4)
            self.o = nn.Linear(4, 7, bias=False)
            self.o.weight = self.e.weight

        def forward(self, i):
            return self.o(self.e(i))

    m = t.model(Tied())
    o = torch.optim.Adam(m.parameters())
    i = t.send(torch.randint(0, 7, (5,)))
    for _ in range(2):
        loss = functional.cross_entropy(m(i), i)
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def diffusion(t: Any) -> list[Any]:
    m = t.model(nn.Linear(5, 4))
    o = torch.optim.Adam(m.parameters())
    x = t.send(make_x())
    bar = t.send(torch.linspace(0.99, 0.1, 10).cumprod(0))
    for _ in range(2):
        k = t.send(torch.randint(0, 10, (12,)))
        noise = torch.randn_like(x)
        a = bar[k][:, None]
        noisy = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = functional.mse_loss(m(torch.cat([noisy, k[:, None].float() / 10], 1)), noise)
        o.zero_grad()
        loss.backward()
        o.step()
    return [loss, *params(m)]


@program
def gumbel(t: Any) -> list[Any]:
    x = t.send(make_x()).requires_grad_()
    y = functional.gumbel_softmax(x, hard=True)
    (y * x).sum().backward()
    return [y, x.grad]


@program
def moe(t: Any) -> list[Any]:
    gate, ex = t.model(nn.Linear(4, 3)), t.model(nn.ModuleList([nn.Linear(4, 2) for _ in range(3)]))
    x = t.send(make_x())
    g = gate(x).softmax(-1)
    y = sum(g[:, i : i + 1] * e(x) for i, e in enumerate(ex))
    y.sum().backward()
    return [y, *[p.grad for p in gate.parameters()]]
