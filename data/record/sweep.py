# SPDX-License-Identifier: Apache-2.0
"""Record a random search of 100 settings, 50 epochs each: `data/sweeps`.

    python data/record/sweep.py [--out DIR]

Multilayer perceptrons of scikit-learn on its bundled digits, 1300 images to train and 497 to
validate; two minutes on one core.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

ROOT = Path(__file__).resolve().parents[2]
TRIALS, EPOCHS, TRAINED_ON = 100, 50, 1300
METRICS = {
    "digits-loss": ("validation loss (cross-entropy, nats)", "min"),
    "digits-accuracy": ("validation accuracy", "max"),
}


def setting(trial: int) -> MLPClassifier:
    """Draw the setting of a trial."""
    rng = np.random.default_rng([1, trial])
    return MLPClassifier(
        hidden_layer_sizes=(int(2 ** rng.uniform(3, 7)),) * int(rng.integers(1, 3)),
        solver=str(rng.choice(["sgd", "adam"])),
        learning_rate_init=float(10 ** rng.uniform(-4, -0.3)),
        batch_size=int(2 ** rng.integers(4, 9)),
        alpha=float(10 ** rng.uniform(-6, 0)),
        momentum=float(rng.uniform(0, 0.99)),
        random_state=trial,
    )


def main() -> None:
    """Train all and write both metrics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "data" / "sweeps")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    seen, hidden = slice(0, TRAINED_ON), slice(TRAINED_ON, None)
    rows: dict[str, list[tuple[str, int, str]]] = {name: [] for name in METRICS}
    for trial in range(TRIALS):
        model = setting(trial)
        for epoch in range(1, EPOCHS + 1):
            try:
                model.partial_fit(images[seen], labels[seen], classes=np.arange(10))
                chance = model.predict_proba(images[hidden])
                loss = log_loss(labels[hidden], chance, labels=np.arange(10))
                accuracy = float((chance.argmax(1) == labels[hidden]).mean())
            except ValueError:  # scikit-learn refuses weights that have overflowed
                loss, accuracy = math.nan, math.nan
            rows["digits-loss"].append((f"cfg{trial:03d}", epoch, f"{loss:.6g}"))
            rows["digits-accuracy"].append((f"cfg{trial:03d}", epoch, f"{accuracy:.6g}"))
    for name, (metric, direction) in METRICS.items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("curve", "step", "value"))
        writer.writerows(rows[name])
        (out / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
        about = {"collection": name, "metric": metric, "direction": direction, "curves": TRIALS}
        (out / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
