#!/usr/bin/python3
"""Train boosted trees on drawn points, some trees an epoch.

SIGUSR1 makes it save after the present epoch and leave with status 85. Started again with the same
--state it goes on from there. Environment: OMP_NUM_THREADS, LEAVES (31), RATE (0.1).
"""

import argparse
import os
import pickle
import signal
import sys

asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(85))

p = argparse.ArgumentParser()
p.add_argument("--epochs", type=int, default=27)
p.add_argument("--state", required=True)
args = p.parse_args()

from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier

x, y = make_classification(n_samples=60000, n_features=24, n_informative=12, n_classes=4, random_state=1)
learn = len(y) * 3 // 4
done, model = 0, HistGradientBoostingClassifier(
    warm_start=True, early_stopping=False, learning_rate=float(os.environ.get("RATE", "0.1")),
    max_leaf_nodes=int(os.environ.get("LEAVES", "31")), random_state=1)
if os.path.exists(args.state):
    with open(args.state, "rb") as f:
        done, model = pickle.load(f)
while done < args.epochs:
    if asked:
        with open(args.state + ".tmp", "wb") as f:
            pickle.dump((done, model), f)
        os.replace(args.state + ".tmp", args.state)
        sys.exit(asked[0])
    done += 1
    model.set_params(max_iter=4 * done).fit(x[:learn], y[:learn])
    print(f"epoch {done}/{args.epochs} loss 0 acc {model.score(x[learn:], y[learn:]):.4f}", flush=True)
