"""What decompositions cost beside the rest of a right-hand side in an interpreted program, as that of [002] was.

A program in MATLAB or numpy pays each call by itself: the small products of a right-hand side take longer there than what
they compute. Prints the decompositions of a Jacobian of 26 x 30 as multiples of QR, and from how many products of two
3 x 3 matrices on the whole of a right-hand side takes the same time within 1.5, whatever the decomposition.

    OPENBLAS_NUM_THREADS=1 python3 tests/bench/interpreted_complements.py
"""

import statistics
import time

import numpy as np

random = np.random.default_rng(2)
jacobian = random.standard_normal((26, 30))
first, second = random.standard_normal((2, 3, 3))

WAYS = {
    "QR of the transpose": lambda: np.linalg.qr(jacobian.T, mode="complete"),
    "eigenvalues of the product with the transpose": lambda: np.linalg.eigh(jacobian.T @ jacobian),
    "singular values": lambda: np.linalg.svd(jacobian),
}


def microseconds(call, calls: int = 200, rounds: int = 15) -> float:
    """The median over rounds of the time of one call."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return statistics.median(times)


costs = {name: microseconds(call) for name, call in WAYS.items()}
product = microseconds(lambda: first @ second, calls=5000)
fastest, slowest = min(costs.values()), max(costs.values())
for name, cost in costs.items():
    print(f"{name}: {cost:.0f} us, {cost / costs['QR of the transpose']:.1f} times QR")
print(f"slowest less fastest: {(slowest - fastest) / product:.0f} products of two 3 x 3 matrices, {product:.2f} us each")
# (slowest + n product) / (fastest + n product) = 1.5
print(f"within 1.5 from {max(0.0, (slowest - 1.5 * fastest) / (0.5 * product)):.0f} products on")
