#!/usr/bin/env python3
"""Coefficients of the polynomials in src/codegen/math: minimax fits by the Remez exchange, rounded to f32 or f64.

Needs mpmath and numpy. `minimax.py` lists the fits, `minimax.py NAME...` prints coefficients (lowest power first) with the
base-2 logarithm of the error before and after rounding.
"""
import random
import re
import sys

import numpy as np
from mpmath import mp, mpf, matrix, lu_solve

mp.prec = 300
LN2 = mp.log(2)
TINY = mpf(10) ** -25


def remez(f, low, high, degree, weight, points=40, rounds=12):
    """Minimises max |weight(x) (f(x) - p(x))| on a Chebyshev grid."""
    n = degree + 1
    m = points * (n + 1)
    xs = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (m - i) / m) for i in range(m + 1)]
    ys, ws = [f(x) for x in xs], [weight(x) for x in xs]
    basis = [[x**p for p in range(n)] for x in xs]
    reference = [round(i * m / n) for i in range(n + 1)]
    best = None
    for _ in range(rounds):
        a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for row, i in enumerate(reference):
            for c in range(n):
                a[row, c] = basis[i][c] * ws[i]
            a[row, n] = (-1) ** row
            b[row] = ys[i] * ws[i]
        solution = lu_solve(a, b)
        coefficients = [solution[i] for i in range(n)]
        errors = [w * (y - sum(c * t for c, t in zip(coefficients, row))) for w, y, row in zip(ws, ys, basis)]
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = coefficients, worst
        if worst <= abs(solution[n]) * mpf("1.0005"):
            break
        extrema = []
        for i, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > n + 1:
            weakest = min(range(len(extrema)), key=lambda k: abs(errors[extrema[k]]))
            if weakest in (0, len(extrema) - 1) or len(extrema) == n + 2:
                extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
            else:
                neighbour = min(weakest - 1, weakest + 1, key=lambda k: abs(errors[extrema[k]]))
                for k in sorted((weakest, neighbour), reverse=True):
                    extrema.pop(k)
        if len(extrema) < n + 1:
            break
        reference = extrema
    return best


def rounded(f, low, high, degree, weight, bits):
    """Rounds the coefficients, then looks for a better neighbour of each."""
    coefficients, ideal = remez(f, low, high, degree, weight)
    c = [mp.ldexp(mp.nint(mp.ldexp(v, bits - int(mp.frexp(v)[1]))), int(mp.frexp(v)[1]) - bits) for v in coefficients]
    xs = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * i / 600) for i in range(601)]
    errors = np.array([float(weight(x) * (f(x) - mp.polyval(c[::-1], x))) for x in xs])
    basis = np.array([[float(weight(x) * x**p) for x in xs] for p in range(degree + 1)])
    unit = [float(mp.ldexp(1, int(mp.frexp(v)[1]) - bits)) for v in c]
    steps, best, rng = [0] * len(c), np.max(np.abs(errors)), random.Random(1)
    for _ in range(400 * len(c)):
        i, j = rng.randrange(len(c)), rng.randrange(len(c))
        di, dj = rng.choice([-300, -50, -8, -2, -1, 1, 2, 8, 50, 300]), rng.choice([-100, -20, -3, -1, 0, 1, 3, 20, 100])
        if i == j:
            dj = 0
        trial = errors - di * unit[i] * basis[i] - dj * unit[j] * basis[j]
        if np.max(np.abs(trial)) < best:
            best, errors = np.max(np.abs(trial)), trial
            steps[i] += di
            steps[j] += dj
    return [float(v) + k * u for v, k, u in zip(c, steps, unit)], ideal, best


def near_zero(value, series):
    """value(x), or its series where the formula cancels."""
    return lambda x: series(x) if abs(x) < TINY else value(x)


def of_square(value, series):
    return lambda z: series(z) if z < TINY else value(mp.sqrt(z))


EXP = near_zero(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6)
EXP2 = near_zero(lambda r: mp.expm1(r * LN2) / r, lambda r: LN2 + r * LN2**2 / 2)
LOG = near_zero(lambda f: (mp.log1p(f) - f) / f**2, lambda f: -mpf(1) / 2 + f / 3)
LOG_CUBE = near_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: mpf(1) / 3 - f / 4)
POW_LOG2 = near_zero(lambda f: mp.log1p(f) / f / LN2, lambda f: (1 - f / 2) / LN2)
LOG_S = of_square(lambda s: (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3, lambda z: mpf(2) / 3 + 2 * z / 5)
LOG_PAIR = of_square(lambda s: ((mp.log((1 + s) / (1 - s)) - 2 * s) / s**3 - mpf(2) / 3) / s**2, lambda z: mpf(2) / 5 + 2 * z / 7)
SIN = of_square(lambda r: (mp.sin(r) - r) / r**3, lambda z: -mpf(1) / 6 + z / 120)
COS = of_square(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4, lambda z: mpf(1) / 24 - z / 720)
TANH = of_square(lambda r: (mp.tanh(r) - r) / r**3, lambda z: -mpf(1) / 3 + 2 * z / 15)
SINH = of_square(lambda r: (mp.sinh(r) - r) / r**3, lambda z: mpf(1) / 6 + z / 120)
ASINH = of_square(lambda r: (mp.asinh(r) - r) / r**3, lambda z: -mpf(1) / 6 + 3 * z / 40)
ATANH = of_square(lambda r: (mp.atanh(r) - r) / r**3, lambda z: mpf(1) / 3 + z / 5)
TAN = of_square(lambda r: (mp.tan(r) - r) / r**3, lambda z: mpf(1) / 3 + 2 * z / 15)
ATAN = of_square(lambda r: (mp.atan(r) - r) / r**3, lambda z: -mpf(1) / 3 + z / 5)
ASIN = of_square(lambda r: (mp.asin(r) - r) / r**3, lambda z: mpf(1) / 6 + 3 * z / 40)
ERF = of_square(lambda r: mp.erf(r) / r, lambda z: 2 / mp.sqrt(mp.pi) * (1 - z / 3))
ERF_V = lambda t: -mp.log(mp.erfc(t), 2)
CDF_V = lambda t: -mp.log(mp.erfc(t / mp.sqrt(2)) / 2, 2)
ERFC_T = lambda w: mpf("3.75") * (1 + w) / (1 - w)
ERFC = lambda w: (1 + 2 * ERFC_T(w)) * mp.exp(ERFC_T(w) ** 2) * mp.erfc(ERFC_T(w))

ERFC_NEAR_T = lambda w: 2 * (1 + w) / (1 - w)
ERFC_NEAR = lambda w: (1 + 2 * ERFC_NEAR_T(w)) * mp.exp(ERFC_NEAR_T(w) ** 2) * mp.erfc(ERFC_NEAR_T(w))

relative = lambda f: lambda x: 1 / f(x)
# The weight of a tail t in head(r) + power(r) t, relative to the sum.
tail = lambda power, total: lambda x: mpf(0) if x == 0 else abs(power(x) / total(x))
tail_z = lambda power, total: lambda z: mpf(0) if z == 0 else abs(power(z) / total(mp.sqrt(z)))


HALF_LN2 = LN2 / 2 * mpf("1.002")
ROOT = mp.sqrt(2)
S = ((ROOT - 1) / (ROOT + 1) * mpf("1.0005")) ** 2
QUARTER = (mp.pi / 4 * mpf("1.002")) ** 2
EXP_WEIGHT = tail(lambda r: r**2, mp.expm1)
SIN_WEIGHT = tail_z(lambda z: z * mp.sqrt(z), mp.sin)
COS_WEIGHT = tail_z(lambda z: z**2, mp.cos)
TANH_WEIGHT = tail_z(lambda z: z * mp.sqrt(z), mp.tanh)
Z = lambda z: z

# name: function, interval, degree, weight, bits
FITS = {
    "exp_f32": (EXP, -HALF_LN2, HALF_LN2, 4, EXP_WEIGHT, 24),
    "exp_f64": (EXP, -HALF_LN2, HALF_LN2, 10, EXP_WEIGHT, 53),
    "expm1_f32": (EXP, -HALF_LN2, HALF_LN2, 5, EXP_WEIGHT, 24),
    "exp2_f32": (EXP2, mpf("-.501"), mpf(".501"), 5, relative(EXP2), 24),
    "exp2_f64": (EXP2, mpf("-.501"), mpf(".501"), 11, relative(EXP2), 53),
    "log_f32": (LOG_CUBE, 1 / ROOT - 1, ROOT - 1, 7, tail(lambda f: f**3, mp.log1p), 24),
    "softplus_f32": (LOG_CUBE, -mpf(1) / 4, mpf(1) / 2, 7, tail(lambda f: f**3, mp.log1p), 24),
    "log_f64": (LOG_S, mpf(0), S, 6, lambda z: z / 2, 53),
    "pow_log2_f32": (POW_LOG2, 1 / ROOT - 1, ROOT - 1, 12, relative(POW_LOG2), 53),
    "pow_exp2_f32": (EXP2, mpf("-.501"), mpf(".501"), 6, relative(EXP2), 53),
    "log_pair_f64": (LOG_PAIR, mpf(0), S, 7, lambda z: z**2 / 2, 53),
    "sin_f32": (SIN, mpf(0), QUARTER, 3, SIN_WEIGHT, 24),
    "sin_f64": (SIN, mpf(0), QUARTER, 5, SIN_WEIGHT, 53),
    "cos_f32": (COS, mpf(0), QUARTER, 2, COS_WEIGHT, 24),
    "cos_f64": (COS, mpf(0), QUARTER, 5, COS_WEIGHT, 53),
    "tanh_f32": (TANH, mpf(0), mpf(1), 6, TANH_WEIGHT, 24),
    "sinh_f32": (SINH, mpf(0), mpf(1), 3, tail_z(lambda z: z * mp.sqrt(z), mp.sinh), 24),
    "asinh_f32": (ASINH, mpf(0), mpf(".25"), 4, tail_z(lambda z: z * mp.sqrt(z), mp.asinh), 24),
    "atanh_f32": (ATANH, mpf(0), mpf(".09"), 3, tail_z(lambda z: z * mp.sqrt(z), mp.atanh), 24),
    "tan_f32": (TAN, mpf(0), QUARTER, 6, tail_z(lambda z: z * mp.sqrt(z), mp.tan), 24),
    "atan_f32": (ATAN, mpf(0), mpf(".2501"), 4, tail_z(lambda z: z * mp.sqrt(z), mp.atan), 24),
    "asin_f32": (ASIN, mpf(0), mpf(".25"), 4, tail_z(lambda z: z * mp.sqrt(z), mp.asin), 24),
    "tanh_f64": (TANH, mpf(0), mpf(".5625") ** 2, 11, TANH_WEIGHT, 53),
    "atan_f64": (ATAN, mpf(0), ((ROOT - 1) * mpf("1.0005")) ** 2, 10, Z, 53),
    "asin_f64": (ASIN, mpf(0), mpf(".25"), 12, Z, 53),
    "erf_f32": (lambda z: ERF(z) - 1, mpf(0), mpf(".96") ** 2, 6, relative(ERF), 24),
    "erf_v_f32": (ERF_V, mpf(".94"), mpf(4), 6, lambda t: LN2 * mp.erfc(t) / mp.erf(t), 24),
    "erf_f64": (ERF, mpf(0), mpf(1), 11, relative(ERF), 53),
    "erfc_f32": (ERFC_NEAR, mpf("-.6"), mpf("8.1") / mpf("12.1"), 9, relative(ERFC_NEAR), 24),
    "erfc_f64": (ERFC, mpf(-1), (mpf("27.5") - 3.75) / (mpf("27.5") + 3.75), 24, relative(ERFC), 53),
    "normal_cdf_f32": (CDF_V, mpf(0), mpf(5), 10, lambda t: 1 / max(mpf(1), CDF_V(t)), 24),
}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        print("\n".join(FITS))
    for name in sys.argv[1:]:
        values, ideal, reached = rounded(*FITS[name])
        print(f"{name}: 2^{mp.nstr(mp.log(ideal, 2), 4)}, rounded 2^{mp.nstr(mp.log(reached, 2), 4)}")
        print("  {" + ", ".join(re.sub(r"\.?0*p\+?", "p", v.hex()) for v in values) + "}")
