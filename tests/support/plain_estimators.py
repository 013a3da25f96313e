"""Plain, slow versions of weighted estimators and excursion effects, from their formulas."""

import math

import numpy as np


def ratio(top, bottom):
    """Return top / bottom, or nan where the bottom is zero."""
    return top / bottom if bottom != 0 else math.nan


def has_ended(episode):
    """Return whether the episode ended by itself or reached the horizon, rather than was cut."""
    return bool(episode[-1]["ended"])


def logged_chances(episodes, H):
    """Return, per episode, the share of each row's advice among rows of its state and step."""
    rows_at = {}
    rows_with = {}
    for episode in episodes:
        for h, row in enumerate(episode):
            place = (h, row["state"])
            choice = (h, row["state"], row["advice"])
            rows_at[place] = rows_at.get(place, 0) + 1
            rows_with[choice] = rows_with.get(choice, 0) + 1
    chances = []
    for episode in episodes:
        own = []
        for h, row in enumerate(episode):
            own.append(rows_with[h, row["state"], row["advice"]] / rows_at[h, row["state"]])
        chances.append(own)
    return chances


def observed_chances(episodes, H):
    """Return G, the chance that an episode is still observed at each step."""
    G = [1.0]
    for k in range(H - 1):
        risk = 0
        cuts = 0
        for episode in episodes:
            last = len(episode) - 1
            if last < k:
                continue
            if last == k and has_ended(episode):
                continue
            risk += 1
            if last == k:
                cuts += 1
        # With nobody at risk there is nothing to cut, so the chance stays as it is.
        stays = 1.0 - cuts / risk if risk > 0 else 1.0
        G.append(G[-1] * stays)
    return G


def censoring_counts(episodes, H):
    """Return, per episode, what it counts at each of the H steps."""
    G = observed_chances(episodes, H)
    counts = []
    for episode in episodes:
        last = len(episode) - 1
        own = []
        for h in range(H):
            if h <= last:
                own.append(1.0 / G[h])
            elif has_ended(episode):
                own.append(1.0 / G[last])
            else:
                own.append(0.0)
        counts.append(own)
    return counts


def mean_return(episodes, H):
    """Return the mean return of the logged episodes, corrected for cut records."""
    counts = censoring_counts(episodes, H)
    total = 0.0
    for h in range(H):
        top = 0.0
        bottom = 0.0
        for episode, c in zip(episodes, counts, strict=True):
            reward = episode[h]["reward"] if h < len(episode) else 0.0
            top += c[h] * reward
            bottom += c[h]
        total += ratio(top, bottom)
    return total


def weights(episodes, policy, chances, H):
    """Return, per episode, the H cumulative weights of the policy against the logged advice."""
    result = []
    for episode, chance in zip(episodes, chances, strict=True):
        product = 1.0
        own = []
        for h in range(H):
            if h < len(episode):
                row = episode[h]
                product *= policy[h][row["state"]].get(row["advice"], 0.0) / chance[h]
            own.append(product)
        result.append(own)
    return result


def weighted_value(episodes, policy, chances, H):
    """Return the self-normalised, stepwise weighted value of the policy."""
    counts = censoring_counts(episodes, H)
    W = weights(episodes, policy, chances, H)
    total = 0.0
    for h in range(H):
        top = 0.0
        bottom = 0.0
        for episode, c, w in zip(episodes, counts, W, strict=True):
            reward = episode[h]["reward"] if h < len(episode) else 0.0
            top += c[h] * w[h] * reward
            bottom += c[h] * w[h]
        total += ratio(top, bottom)
    return total


def doubly_robust_value(episodes, policy, chances, Q, V, H):
    """Return the self-normalised doubly robust value of the policy, with Q and V given."""
    counts = censoring_counts(episodes, H)
    W = weights(episodes, policy, chances, H)
    total = 0.0
    for h in range(H):
        residual_top = 0.0
        residual_bottom = 0.0
        model_top = 0.0
        model_bottom = 0.0
        for episode, c, w in zip(episodes, counts, W, strict=True):
            before = w[h - 1] if h > 0 else 1.0
            residual = 0.0
            model = 0.0
            if h < len(episode):
                row = episode[h]
                residual = row["reward"] - Q[h][row["state"]][row["advice"]]
                model = V[h][row["state"]]
            residual_top += c[h] * w[h] * residual
            residual_bottom += c[h] * w[h]
            model_top += c[h] * before * model
            model_bottom += c[h] * before
        total += ratio(residual_top, residual_bottom) + ratio(model_top, model_bottom)
    return total


def advice_shares(episodes, arms, m):
    """Return mu by (step, state, advice), each row weighted by 1 - m of its arm."""
    weight_at = {}
    weight_with = {}
    for episode, arm in zip(episodes, arms, strict=True):
        for h, row in enumerate(episode):
            place = (h, row["state"])
            choice = (h, row["state"], row["advice"])
            weight_at[place] = weight_at.get(place, 0.0) + (1.0 - m[arm])
            weight_with[choice] = weight_with.get(choice, 0.0) + (1.0 - m[arm])
    mu = {}
    for (h, state, advice), weight in weight_with.items():
        # A place with no weight at all leaves its shares open; they are taken as 0.
        mu[h, state, advice] = weight / weight_at[h, state] if weight_at[h, state] > 0 else 0.0
    return mu


def arm_paths(episodes, H, arms=None):
    """Return, per episode, the H path probabilities when advice was assigned by arm."""
    if arms is None:
        arms = list(range(len(episodes)))
    silent = {}
    for episode, arm in zip(episodes, arms, strict=True):
        quiet = all(row["advice"] is None for row in episode)
        silent[arm] = silent.get(arm, True) and quiet
    m = {arm: 1.0 if silent[arm] else 0.0 for arm in silent}

    for _ in range(500):
        p0 = sum(m.values()) / len(m)
        mu = advice_shares(episodes, arms, m)
        product = dict.fromkeys(silent, 1.0)
        for episode, arm in zip(episodes, arms, strict=True):
            if silent[arm]:
                for h, row in enumerate(episode):
                    product[arm] *= mu[h, row["state"], None]
        for arm in silent:
            if silent[arm]:
                m[arm] = p0 / (p0 + (1.0 - p0) * product[arm])
            else:
                m[arm] = 0.0

    paths = []
    for episode in episodes:
        quiet_so_far = 1.0
        advised = 1.0
        own = []
        for h in range(H):
            if h < len(episode):
                row = episode[h]
                if row["advice"] is not None:
                    quiet_so_far = 0.0
                advised *= mu[h, row["state"], row["advice"]]
            own.append(p0 * quiet_so_far + (1.0 - p0) * advised)
        paths.append(own)
    return paths


def excursion_effect(y, sent, p, state, step, time, cluster):
    """Return the weighted, centred least squares coefficients and their robust covariance."""
    n = len(y)
    y = np.array(y, dtype=float)

    rows_in = {}
    p_sum = {}
    for i in range(n):
        s = int(state[i])
        rows_in[s] = rows_in.get(s, 0) + 1
        p_sum[s] = p_sum.get(s, 0.0) + float(p[i])
    by_frequency = sorted(rows_in, key=lambda s: (-rows_in[s], s))

    X = []
    w = []
    for i in range(n):
        s = int(state[i])
        a = 1.0 if sent[i] else 0.0
        ptilde = p_sum[s] / rows_in[s]
        if a == 1.0:
            w.append(ptilde / float(p[i]))
        else:
            w.append((1.0 - ptilde) / (1.0 - float(p[i])))
        line = [1.0, float(step[i])]
        line += [1.0 if s == other else 0.0 for other in by_frequency[1:]]
        if time is not None:
            line.append(float(time[i]))
        line.append(a - ptilde)
        if time is not None:
            line.append((a - ptilde) * float(time[i]))
        X.append(line)
    X = np.array(X)
    w = np.array(w)

    size = X.shape[1]
    XWX = np.zeros((size, size))
    XWy = np.zeros(size)
    for i in range(n):
        XWX += w[i] * np.outer(X[i], X[i])
        XWy += w[i] * X[i] * y[i]
    B = np.linalg.inv(XWX)
    beta = B @ XWy

    members = {}
    for i in range(n):
        members.setdefault(cluster[i], []).append(i)
    meat = np.zeros((size, size))
    for rows in members.values():
        own_XWX = np.zeros((size, size))
        own_score = np.zeros(size)
        for i in rows:
            own_XWX += w[i] * np.outer(X[i], X[i])
            own_score += w[i] * X[i] * (y[i] - X[i] @ beta)
        u = np.linalg.inv(np.eye(size) - own_XWX @ B) @ own_score
        meat += np.outer(u, u)
    return beta, B @ meat @ B


def logged_survival(episodes, H):
    """Return the share of logged episodes still running at each of the H steps."""
    alive = [1.0]
    for k in range(H - 1):
        rows = 0
        ended = 0
        for episode in episodes:
            last = len(episode) - 1
            if last >= k:
                rows += 1
            if last == k and has_ended(episode):
                ended += 1
        # With no rows left at this step the share stays as it is.
        alive.append(alive[-1] * (1.0 - ended / rows if rows > 0 else 1.0))
    return alive
