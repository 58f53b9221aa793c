#!/usr/bin/python3
"""Train a small convolutional network on the handwritten digits of scikit-learn.

It runs in epochs and prints one line an epoch. SIGUSR1 makes it save after the
present epoch and leave with status 85, SIGTERM with 143; started again with the
same --state it goes on from there and gives what an uninterrupted run gives.

Environment: BATCH_SIZE (32), OMP_NUM_THREADS (1), LEARNING_RATE (0.001, for
batches of 32), WIDTH (64). As a trial of a search it keeps its checkpoint in the
folder PITCHPIPE_TRIAL_DIR, the finished network too.
"""

import argparse
import math
import os
import signal
import sys
import tempfile

EXIT_USAGE, EXIT_SAVED, EXIT_TERMINATED = 2, 85, 143

TRIAL = os.environ.get("PITCHPIPE_TRIAL_DIR", "")  # folder of the trial of a search

asked = []  # exit statuses that signals asked for


def main():
    # First of all: the imports below take seconds, and a signal must not kill them.
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(EXIT_SAVED))
    signal.signal(signal.SIGTERM, lambda *_: asked.append(EXIT_TERMINATED))
    args = arguments()
    batch = from_environment("BATCH_SIZE", 32)
    args.learning_rate = learning_rate()
    threads = from_environment("OMP_NUM_THREADS", 1)
    os.environ["OMP_NUM_THREADS"] = str(threads)

    import torch

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    run(torch, args, batch)


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--epochs", type=int, default=40, help="epochs in all")
    p.add_argument("--input", type=int, default=1, help="which split of the digits, from 1")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--width", type=int, default=from_environment("WIDTH", 64), help="channels of the first layer")
    p.add_argument("--state", default="", help="checkpoint file")
    args = p.parse_args()
    if TRIAL:
        os.makedirs(TRIAL, exist_ok=True)
        args.state = os.path.join(TRIAL, "digits.ckpt")
    for name in ("epochs", "input", "width"):
        if getattr(args, name) < 1:
            p.error(f"--{name}: want at least 1")
    return args


def from_environment(name, default):
    text = os.environ.get(name, "")
    if text == "":
        return default
    if not text.isdigit() or not 1 <= int(text) <= 1024:
        print(f"digits: {name}={text!r}: want a whole number from 1 to 1024", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    return int(text)


def learning_rate():
    text = os.environ.get("LEARNING_RATE", "") or "1e-3"
    try:
        if 0 < float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    print(f"digits: LEARNING_RATE={text!r}: want a number above 0, at most 1", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def data(torch, args):
    """Return images and labels for training and, held out, for judging."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    images = digits.images.astype("float32")[:, None] / 16
    split = train_test_split(images, digits.target, test_size=0.25, random_state=args.input, stratify=digits.target)
    return [torch.from_numpy(part) for part in split]


def network(torch, width):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(8 * width, 10),
    )


def rate(most, epoch, epochs, batch):
    """Adam's learning rate grows with the square root of the batch and falls along a cosine."""
    return most * math.sqrt(batch / 32) * (1 + math.cos(math.pi * epoch / epochs)) / 2


def run(torch, args, batch):
    train_x, test_x, train_y, test_y = data(torch, args)
    net = network(torch, args.width)
    optimiser = torch.optim.Adam(net.parameters())
    work = {k: getattr(args, k) for k in ("epochs", "input", "seed", "width")}
    done = load(torch, args.state, work, net, optimiser)
    while done < args.epochs:
        leave_if_asked(torch, args.state, work, done, net, optimiser)
        # Seeded by the epoch, so that a resumed run draws what an uninterrupted one draws.
        torch.manual_seed(args.seed * 100_003 + done)
        for group in optimiser.param_groups:
            group["lr"] = rate(args.learning_rate, done, args.epochs, batch)
        loss = learn(torch, net, optimiser, train_x, train_y, batch)
        acc = judge(torch, net, test_x, test_y)
        done += 1
        print(f"epoch {done}/{args.epochs} loss {loss:.6g} acc {acc:.4f}", flush=True)
    if TRIAL:
        save(torch, args.state, work, done, net, optimiser)
    elif args.state and os.path.exists(args.state):
        os.remove(args.state)
    print(f"done after {done} epochs", flush=True)


def learn(torch, net, optimiser, x, y, batch):
    net.train()
    total = 0.0
    for picked in torch.randperm(len(y)).split(batch):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[picked]), y[picked])
        loss.backward()
        optimiser.step()
        total += loss.item() * len(picked)
    return total / len(y)


def judge(torch, net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def load(torch, path, work, net, optimiser):
    """Take the network to where the checkpoint was and return the epochs done."""
    if not path or not os.path.exists(path):
        return 0
    state = torch.load(path)
    if state["work"] != work:
        print(f"digits: checkpoint {path} is of other work: {state['work']}, want {work}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    net.load_state_dict(state["net"])
    optimiser.load_state_dict(state["optimiser"])
    print(f"resumed from {path}: {state['done']} of {work['epochs']} epochs are done", file=sys.stderr)
    return state["done"]


def leave_if_asked(torch, path, work, done, net, optimiser):
    """Save and exit where a signal asked for it; called between two epochs."""
    if not asked:
        return
    if not path:
        if EXIT_TERMINATED in asked:
            sys.exit(EXIT_TERMINATED)
        asked.clear()
        print("SIGUSR1: there is no --state to save to, going on", file=sys.stderr)
        return
    save(torch, path, work, done, net, optimiser)
    print(f"saved to {path}: {done} of {work['epochs']} epochs are done", file=sys.stderr)
    sys.exit(asked[0])


def save(torch, path, work, done, net, optimiser):
    state = {"work": work, "done": done, "net": net.state_dict(), "optimiser": optimiser.state_dict()}
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=os.path.basename(path), suffix=".tmp", delete=False) as f:
        torch.save(state, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(f.name, path)


if __name__ == "__main__":
    main()
