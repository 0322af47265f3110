"""The definition of `ag_chain` in plain loops: blocks of two, their boxes, and their joints by the slowest way.

`asked` answers from the law itself: asked.row(x, hide, i) are the log-probabilities at place i of x with places hidden.
"""

import numpy as np


def arnold_gokhale(a, b, u, v, row, column):
    """By plain steps: q = (w_y A + w'_x B) / (w_y/v_y + w'_x/u_x), to rounding."""
    r = column * a + row[:, None] * b
    for _ in range(20_000):
        q = r / (column / v + (row / u)[:, None])
        q /= q.sum()
        change = max(abs(q.sum(1) - u).max(), abs(q.sum(0) - v).max())
        u, v = q.sum(1), q.sum(0)
        if change < 1e-15:
            break
    return q


def gibbs(a, b):
    """½ (A v + B u) of the stationary law, by the eigenvector."""
    values, vectors = np.linalg.eig(a @ b.T)
    u = np.real(vectors[:, np.argmax(np.real(values))])
    u = u / u.sum()
    return (a * (u @ b) + b * u[:, None]) / 2


def block(asked, x, hide, places, box, joint, weights):
    """log p of the first token of a block, and of the second given it."""
    first, second = places
    p_a, p_b = (np.exp(asked.row(x, hide, place)) for place in places)
    likely_a, likely_b = (np.argsort(-p, kind="stable")[:box] for p in (p_a, p_b))

    def given(place, token, other):
        return np.exp(asked.row([*x[:place], token, *x[place + 1 :]], hide - {place}, other))

    b_given = {token: given(first, token, second) for token in {*likely_a.tolist(), x[first]}}
    b = np.stack([b_given[token][likely_b] for token in likely_a.tolist()])
    a = np.stack([given(second, token, first)[likely_a] for token in likely_b.tolist()], 1)
    chain = p_a[likely_a][:, None] * b
    a_inside, b_inside = a / a.sum(0), b / b.sum(1, keepdims=True)
    row, column = (p_a[likely_a], p_b[likely_b]) if weights == "marginal" else (np.ones(len(a)), np.ones(len(a.T)))
    start = (chain / chain.sum()).sum(1), (chain / chain.sum()).sum(0)
    q = gibbs(a_inside, b_inside) if joint == "stationary" else arnold_gokhale(a_inside, b_inside, *start, row, column)

    if x[first] not in likely_a:
        return np.log(p_a[x[first]]), np.log(b_given[x[first]][x[second]])
    i = likely_a.tolist().index(x[first])
    alone = chain.sum() * q[i].sum() + p_a[x[first]] * (1 - b[i].sum())
    if x[second] in likely_b:
        both = chain.sum() * q[i, likely_b.tolist().index(x[second])]
    else:
        both = p_a[x[first]] * b_given[x[first]][x[second]]
    return np.log(alone), np.log(both) - np.log(alone)


def ag_chain(asked, x, words, candidates=16, order="left-to-right", joint="ag", weights="uniform"):
    hidden, values = list(range(len(x))), [0.0] * len(x)
    while hidden:
        if order == "right-to-left":
            hidden.sort(reverse=True)
        if order == "confident":
            sure = {i: asked.row(x, set(hidden), i).max() for i in hidden}
            hidden.sort(key=lambda i: (-sure[i], i))
        if len(hidden) == 1:
            values[hidden[0]] = asked.log_prob(x, set(hidden), hidden[0])
            break
        places = hidden[:2]
        values[places[0]], values[places[1]] = block(asked, x, set(hidden), places, candidates, joint, weights)
        hidden = hidden[2:]
    return values
