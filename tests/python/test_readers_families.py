# SPDX-License-Identifier: Apache-2.0
"""A sample of each family of foreign logs, written for these tests in its tool's layout."""

from __future__ import annotations

import csv
import json
import tarfile
import time
from pathlib import Path

import pytest
from log_files import one, write

import glidepath as gp

EPOCHS = range(1, 13)
_LOSS = {t: round(2 + 3 / t, 4) for t in range(1, 400)}


def lines(form: str, steps: range = range(1, 13), **more: object) -> str:
    """Write a line a step: `t`, its loss `y`, a validation loss `v` and an accuracy `a`."""
    return "".join(
        form.format(t=t, y=_LOSS[t], v=_LOSS[t] + 1, a=1 - 1 / (t + 1), u=3 * t, **more) + "\n"
        for t in steps
    )


def nested(form: str, epochs: int = 3, batches: int = 5, first: int = 1) -> str:
    """Write a line a batch of each epoch."""
    return "".join(
        form.format(e=e + first, b=b, n=batches, y=_LOSS[e * batches + b])
        for e in range(epochs)
        for b in range(1, batches + 1)
    )


STEP_BY_STEP = [t * 1.0 for t in range(1, 13)]
BATCHES = [t * 1.0 for t in range(1, 16)]
CONSOLE = {
    "step, loss": ("Step {t:5d}, Loss: {y}, LR: 0.00015\n", "Loss", STEP_BY_STEP),
    "bare": ("{t} train {y}\n{t} val {v}\n", "train_loss", STEP_BY_STEP),
    "nanogpt eval": ("step {t}: train loss {y}, val loss {v}\n", "train loss", STEP_BY_STEP),
    "nanogpt iter": ("iter {t}: loss {y}, time 12.31ms, mfu 3.21%\n", "loss", STEP_BY_STEP),
    "build-nanogpt": (
        "step {t:5d} | loss: {y} | lr 1.4e-05 | norm: 2.3 | dt: 708.7ms | tok/sec: 739748.09\n",
        *("loss", STEP_BY_STEP),
    ),
    "logging": (
        "2024-05-08 04:07:02,756 - INFO - epoch: {t}, loss: {y}, val_loss: {v}\n",
        *("loss", STEP_BY_STEP),
    ),
    "logging with a name": (
        "INFO:__main__:Epoch 0 | Step {t:4d}/6501 | Loss: {y} | PPL: 2.37 | Time: 0.5s\n",
        *("Loss", STEP_BY_STEP),
    ),
    "keras": (
        "Epoch {t}/12\n  1/313 [....] - ETA: 3s - loss: 9.0\r313/313 [====================] - 408s"
        " 1s/step - loss: {y} - acc: {a:.4f} - val_loss: {v}\n",
        *("loss", STEP_BY_STEP),
    ),
    "keras, one line": (
        "Epoch {t}/12 - 0.21s - loss: {y} - val_loss: {v} - mae: 8949.0\n",
        *("loss", STEP_BY_STEP),
    ),
    "keras 3": (
        "Epoch {t}/12\n\x1b[1m313/313\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s"
        "\x1b[0m 9ms/step - accuracy: {a:.4f} - loss: {y} - val_loss: {v}\n",
        *("loss", STEP_BY_STEP),
    ),
    "keras, verbose 2": (
        "Epoch {t}/12\n313/313 - 3s - 9ms/step - loss: {y} - val_loss: {v}\n",
        *("loss", STEP_BY_STEP),
    ),
    "fairseq, epochs": (
        "2021-01-01 10:00:00 | INFO | train | epoch {t:03d} | loss {y} | nll_loss 1.5 | ppl 12.67 |"
        " wps 5000 | num_updates {u} | lr 0.0001 | gnorm 0.5 | wall 30\n"
        "2021-01-01 10:00:09 | INFO | valid | epoch {t:03d} | valid on 'valid' subset | loss {v} |"
        " ppl 20 | num_updates {u} | best_loss 3.5\n",
        *("loss", [3.0 * t for t in range(1, 13)]),
    ),
    "fairseq, json": (
        '2021-01-01 10:00:00 | INFO | train_inner | {{"epoch": 1, "update": 0.1, "loss": "{y}", '
        '"ppl": "12", "num_updates": "{u}", "lr": "1e-05", "gnorm": "0.5", "wall": "30"}}\n',
        *("loss", [3.0 * t for t in range(1, 13)]),
    ),
    "espnet": (
        "[host] 2021-07-06 14:20:17,332 (trainer:398) INFO: {t}epoch results: [train] "
        "iter_time=0.053, loss={y}, loss_att=33.8, acc=0.750, optim0_lr0=1.7e-04, train_time=2.1, "
        "time=6 hours, 22 minutes and 55.09 seconds, total_count=130000, gpu_max_cached_mem_GB=33, "
        "[valid] loss={v}, acc=0.8, time=1 minute\n",
        *("loss", STEP_BY_STEP),
    ),
    "hugging face": (
        " {t}%|▏         | {t}/500 [00:10<08:20,  1.02s/it]\r"
        "{{'loss': {y}, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'epoch': 0.{t:02d}}}\n",
        *("loss", [t / 100 for t in range(1, 13)]),
    ),
    "tqdm of steps": (
        "Training:  {t}%|▏         | {t}/500 [00:10<08:20,  1.02s/it, loss={y}]\r",
        *("loss", STEP_BY_STEP),
    ),
    "detectron2": (
        "[07/01 10:10:10 d2.utils.events]:  eta: 0:10:10  iter: {t}  total_loss: {y}  loss_cls: 1.5"
        "  loss_box_reg: 0.5  time: 0.5  data_time: 0.01  lr: 4.9e-06  max_mem: 2000M\n",
        *("total_loss", STEP_BY_STEP),
    ),
    "xgboost": ("[{t}]\ttrain-rmse:{y}\teval-rmse:{v}\n", "train-rmse", STEP_BY_STEP),
    "catboost": (
        "{t}:\tlearn: {y}\ttest: {v}\tbest: {v} (3)\ttotal: 12ms\tremaining: 1m 2s\n",
        *("learn", STEP_BY_STEP),
    ),
    "darknet": (
        "\n {t}: 9.5, {y} avg loss, 0.001000 rate, 22.27 seconds, 64 images, 20.9 hours left\n",
        *("avg loss", STEP_BY_STEP),
    ),
    "caffe": (
        "I0718 20:31:17.589109 1399 solver.cpp:218] Iteration {t} (3.5 iter/s, 28.5s/100 iters), "
        "loss = {y}\nI0718 20:31:17.6 1399 solver.cpp:237]     Train net output #0: loss = 9.5 (* 1"
        " = 9.5 loss)\nI0718 20:31:17.7 1399 sgd_solver.cpp:105] Iteration {t}, lr = 0.01\n",
        *("loss", STEP_BY_STEP),
    ),
    "three lines an epoch": (
        "epoch {t:3d}\nloss: {y}\ntest accuracy: {a:.2%}, (512/2466)\n",
        *("loss", STEP_BY_STEP),
    ),
    "stable-baselines": (
        "-----------------------------\n| rollout/      |           |\n"
        "|    ep_rew_mean | {y}      |\n| time/         |           |\n"
        "|    total_timesteps | {u} |\n| train/ |     |\n"
        "|    loss | 9.5 |\n-----------------------------\n",
        *("rollout/ep_rew_mean", [3.0 * t for t in range(1, 13)]),
    ),
    "skorch": (
        "{t:7d}     \x1b[36m   {y}\x1b[0m       \x1b[32m0.6\x1b[0m        {v}  0.0245\n",
        *("train_loss", STEP_BY_STEP),
    ),
    "a score alone": ("Epoch {t}: accuracy {y}, patience 3\n", "accuracy", STEP_BY_STEP),
}
NESTED = {
    "epoch, step of": "Epoch [{e}/3], Step [{b}/{n}], Loss: {y}, Perplexity: 9.5\n",
    "epoch: [e][b/n]": "Epoch: [{e}][{b}/{n}]\tTime 1.1 (1.2)\tData 0.3 (0.3)\tLoss {y} (5.5)\n",
    "mmdet": "2021-09-01 12:00:00,123 - mmdet - INFO - Epoch [{e}][{b}/{n}]\tlr: 1.9e-03, eta: "
    "8:27:01, time: 0.347, memory: 3811, loss_cls: 0.5, loss: {y}\n",
    "mmengine": "2023/05/01 10:10:10 - mmengine - INFO - Epoch(train)  [{e}][ {b}/{n}]  lr: 1.9e-03"
    "  eta: 1:00:00  time: 0.3  loss: {y}  loss_cls: 0.5\n",
    "paddle": "[2022/05/01 10:10:10] ppcls INFO: [Train][Epoch {e}/3][Iter: {b}/{n}]lr(Linear): "
    "0.0004, top1: 0.01, loss: {y}, batch_cost: 0.5s\n",
    "tqdm": "Epoch {e}:  50%|███   | {b}/{n} [00:11<00:11, 11.12s/it, loss={y}]\r",
    "fairseq": "epoch {e:03d}:   {b} / {n} loss={y}, nll_loss=1.5, ppl=9, wps=5, lr=1e-05\n",
    "two lines": "Epoch {e}\n  batch {b}/{n}  loss={y}\n",
    "a counter of another name": "t.log - INFO - iteration:{e} step:{b}/{n}, NER loss: {y}\n",
    "train epoch": "Train Epoch: {e} [{b}/{n} (20%)]\tLoss: {y}\n",
}


@pytest.mark.parametrize("family", CONSOLE)
def test_a_console_log_is_read_by_its_form(tmp_path: Path, family: str) -> None:
    form, metric, step = CONSOLE[family]
    head = "  epoch    train_loss    valid_acc    valid_loss     dur\n-------  ----\n"
    text = "Using device: cuda\nbatch_size: 64\n" + head + lines(form) + "Done.\n"
    run = one(write(tmp_path / "train.log", text))
    assert run.metric == metric
    assert run.step.tolist() == step
    assert run.loss.tolist() == [_LOSS[t] for t in range(1, 13)]
    assert any(note.startswith(repr(metric)) for note in run.notes)


@pytest.mark.parametrize("family", NESTED)
def test_batches_count_on_from_epoch_to_epoch(tmp_path: Path, family: str) -> None:
    run = one(write(tmp_path / "train.log", nested(NESTED[family])))
    assert run.step.tolist() == BATCHES
    assert run.loss.tolist() == [_LOSS[t] for t in range(1, 16)]


def test_the_table_of_yolo_has_its_names_above(tmp_path: Path) -> None:
    text = "".join(
        "     Epoch   gpu_mem       box       total    labels  img_size\n"
        f"     {t}/299     1.2G   0.5  {_LOSS[t]}   35   640: 100%|###| 27/27 [00:16<00:00]\n"
        "          Class      Images      Labels           P           R      mAP@.5  mAP@.5:.95:"
        " 100%|###| 2/2 [00:01<00:00]\n            all         100    300    0.7   0.6   0.5\n"
        for t in EPOCHS
    )
    run = one(write(tmp_path / "train.log", text))
    assert (run.metric, run.loss.tolist()) == ("total_loss", [_LOSS[t] for t in EPOCHS])
    assert run.planned_steps == 299


@pytest.mark.parametrize(
    ("names", "best", "all_names"),
    [
        (
            "Class     Images  Instances      Box(P          R      mAP50  mAP50-95):",
            *("mAP50-95", {"precision", "recall", "mAP50", "mAP50-95"}),
        ),
        (
            "Class     Images  Instances          P          R      mAP50   mAP50-95:",
            *("mAP50-95", {"precision", "recall", "mAP50", "mAP50-95"}),
        ),
        (
            "Class     Images     Labels          P          R     mAP@.5 mAP@.5:.95:",
            *("mAP@.5:.95", {"precision", "recall", "mAP@.5", "mAP@.5:.95"}),
        ),
    ],
)
def test_what_yolo_scores_on_all_classes_is_read_by_the_names_above(
    tmp_path: Path, names: str, best: str, all_names: set[str]
) -> None:
    above = f"   {names} 100%|####| 4/4 [00:01<00:00,  3.1it/s]\n"
    text = "".join(
        "\n      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        f"      {t}/100      2.34G     {_LOSS[t]}      1.234      12   640: 100%|###| 10/10\n"
        f"{above}   all   128   929   0.6   0.5   0.51   {1 - 1 / t}\n"
        for t in EPOCHS
    )
    text += (
        "Validating best.pt...\n"
        + above
        + "all 128 929 0.6 0.5 0.51 0.99\nperson 9 9 0.6 0.5 0.51 0.2\n"
    )
    file = write(tmp_path / "train.log", text)
    assert {info.metric for info in gp.metrics_of(file)} >= all_names
    assert one(file).metric == "box_loss"
    run = one(file, best)
    assert (run.direction, run.step.tolist()) == ("max", STEP_BY_STEP)
    assert run.loss.tolist() == [1 - 1 / t for t in EPOCHS]


def test_of_several_ranks_the_first_is_read(tmp_path: Path) -> None:
    for rank in ("[rank{r}]: ", "{r}: ", "[default{r}]:", "[1,{r}]<stdout>:"):
        text = "".join(
            f"{rank.format(r=r)}step {t} loss {_LOSS[t] + r}\n" for t in EPOCHS for r in (0, 1, 2)
        )
        run = one(write(tmp_path / "slurm-1.out", text))
        assert run.step.tolist() == STEP_BY_STEP, rank
        assert run.loss.tolist() == [_LOSS[t] for t in EPOCHS], rank


def test_evaluation_and_training_are_told_apart_by_their_lines(tmp_path: Path) -> None:
    text = lines("Train Epoch: {t} Loss {y}\nValidation: Loss {v} Acc {a}\n")
    file = write(tmp_path / "a.log", text)
    assert one(file).loss.tolist() == [_LOSS[t] for t in EPOCHS]
    assert one(file, "validation Loss").loss.tolist() == [_LOSS[t] + 1 for t in EPOCHS]


@pytest.mark.parametrize(
    ("form", "training", "held_out"),
    [
        ("Epoch: {t:03d}, Train: {p:.4f}, Val: {q:.4f}, Test: 0.1", "Train", "Val"),
        ("Epoch: {t:03d}, Loss: 0.5, Train: {p:.4f}, Val: {q:.4f}", "Train", "Val"),
        ("Run: 01, Epoch: {t:02d}, Train: {p:.4f}%, Valid: {q:.4f}% Test: 9.5%", "Train", "Valid"),
        ("{t}:\tlearn: {p:.4f}\ttest: {q:.4f}\tbest: {q:.4f} (3)\ttotal: 12ms", "learn", "test"),
        ("Epoch {t} accuracy: train {p:.4f} val {q:.4f}", "train accuracy", "val accuracy"),
    ],
)
@pytest.mark.parametrize("way", ["max", "min"])
def test_a_number_that_only_its_data_name_is_better_the_way_it_went(
    tmp_path: Path, form: str, training: str, held_out: str, way: str
) -> None:
    def score(t: int, plus: float) -> float:
        return round(3 - 2 / t if way == "max" else 1 + 2 / t, 4) + plus

    text = "".join(form.format(t=t, p=score(t, 0), q=score(t, 0.5)) + "\n" for t in EPOCHS)
    file = write(tmp_path / "a.log", text)
    for name, plus in ((training, 0), (held_out, 0.5)):
        run = one(file, name)
        assert run.loss.tolist() == pytest.approx([score(t, plus) for t in EPOCHS])
        assert run.direction == ("max" if "accuracy" in name else way)
        told = any("does not say which way is better" in note for note in run.notes)
        assert told == ("accuracy" not in name)
    if "Loss" not in form and "accuracy" not in form:
        assert one(file).metric == training


def test_a_loss_of_training_and_of_validation_share_their_word(tmp_path: Path) -> None:
    file = write(tmp_path / "a.log", lines("Epoch {t} | iter {u} | loss train: {y}, val: {v}"))
    assert one(file).metric == "loss train"
    run = one(file, "loss val")
    assert (run.direction, run.loss.tolist()) == ("min", [_LOSS[t] + 1 for t in EPOCHS])


@pytest.mark.parametrize(
    ("form", "score", "held_out"),
    [
        (
            "Epoch {t}/12\n-----\ntrain Loss: {y} Acc: {a}\nval Loss: {v} Acc: 0.25",
            "Acc",
            "val Acc",
        ),
        (
            "Epoch {t}\nTraining loss: {y}, acc: {a}\nValidation loss: {v}, acc: 0.25",
            *("acc", "validation acc"),
        ),
        ("Epoch {t}\n Train Loss {y} | F1 {a}\n Val Loss {v} | F1 0.25", "F1", "val F1"),
        (
            "Epoch {t} Phase train Loss {y} Acc {a}\nEpoch {t} Phase val Loss {v} Acc 0.25",
            *("Acc", "val Acc"),
        ),
    ],
)
def test_a_score_behind_a_loss_is_of_the_data_of_that_loss(
    tmp_path: Path, form: str, score: str, held_out: str
) -> None:
    file = write(tmp_path / "a.log", lines(form))
    assert one(file, score).loss.tolist() == [1 - 1 / (t + 1) for t in EPOCHS]
    assert one(file, held_out).loss.tolist() == [0.25] * len(EPOCHS)


def test_a_loss_behind_that_of_validation_is_still_that_of_training(tmp_path: Path) -> None:
    text = lines("step {t} loss: {y}\nEpoch {t} val_loss: {v} loss: {y}")
    file = write(tmp_path / "a.log", text)
    names = {info.metric for info in gp.metrics_of(file)}
    assert names == {"loss", "loss (epoch)", "val_loss"}
    only = write(tmp_path / "b.log", lines("Epoch {t} train_loss: {y} val_loss: {v} acc: {a}"))
    assert {info.metric for info in gp.metrics_of(only)} == {"train_loss", "val_loss", "acc"}


def test_many_rows_of_an_epoch_are_numbered(tmp_path: Path) -> None:
    text = "".join(f"Epoch {e} - Batch loss: {_LOSS[10 * e + b]}\n" for e in (1, 2) for b in EPOCHS)
    run = one(write(tmp_path / "a.log", text))
    assert run.step.tolist() == list(range(1, 25))
    assert any(note.startswith("many rows at each epoch") for note in run.notes)


def test_a_log_without_a_loss_is_refused_with_what_to_add(tmp_path: Path) -> None:
    file = write(tmp_path / "a.log", lines("Epoch {t}: Rec={y}, KL={v}"))
    with pytest.raises(gp.IoError, match=r"say metric= one of Rec, KL, or pattern=r'step"):
        gp.read_traces(file)
    assert one(file, "Rec").loss.tolist() == [_LOSS[t] for t in EPOCHS]
    form = r"Epoch (?P<step>\d+): .* KL=(?P<loss>\S+)"
    (run,) = gp.read_traces(file, pattern=form)
    assert (run.metric, run.loss[0]) == ("loss", _LOSS[1] + 1)


@pytest.mark.parametrize(
    "line",
    [
        "iteration 1/1 |" * 27_000,
        "1/" * 200_000,
        "loss " * 100_000,
        "[" * 300_000 + "loss: 1",
        "step 1 " + "9" * 300_000 + " loss 2",
        "Epoch 1 loss: 0.5 " + "1.5e" * 100_000,
        "|" * 199 + "\n" + "-" * 300_000,
        "\r".join(["50%|" + "x" * 400] * 500),
        "\x1b[" * 100_000,
        "nan" * 100_000 + " nan: nan " * 20_000,
        "x" + "1-" * 150_000 + "1",
        "a@1" * 100_000 + " " * 100_000,
        "loss[1] = 2 " * 20_000 + " " * 100_000,
        "7 " + "train 0.5 val 0.25 " * 10_000,
        "val loss: 2.5 " + "".join(f"acc{i}: 0.5 " for i in range(2_000)),
    ],
    ids=range(15),
)
def test_no_line_takes_long(tmp_path: Path, line: str) -> None:
    file = write(tmp_path / "a.log", "step 1 loss 2.5\n" + line + "\nstep 2 loss 2.25\n")
    began = time.process_time()
    one(file, None)
    assert time.process_time() - began < 5


# ------------------------------------------------------------------------------------ JSON, tables


def rows(*first: dict[str, object], **form: object) -> str:
    """Write JSON lines; of the cells, functions of the step are called."""
    made = [{k: f(t) if callable(f) else f for k, f in form.items()} for t in EPOCHS]
    return "".join(json.dumps(row) + "\n" for row in [*first, *made])


def loss(t: int) -> float:
    return _LOSS[t]


def mllog(t: int) -> str:
    row = {"namespace": "", "time_ms": 1684505482468 + t, "event_type": "POINT_IN_TIME"}
    meta = {"file": "run.py", "lineno": 1722, "samples_count": 3 * t}
    return "0: :::MLLOG " + json.dumps(
        row | {"key": "train_loss", "value": _LOSS[t], "metadata": meta}
    )


FILES = {
    "configuration first": (
        "a.jsonl",
        rows({"lr": 0.1, "model": {"layers": 3}}, step=lambda t: t, train={"loss": 1.5})
        + rows(step=lambda t: t, loss=loss),
        *("loss", STEP_BY_STEP),
    ),
    "openmmlab": (
        "20210901.log.json",
        rows({"env_info": "linux", "seed": None}, mode="train", epoch=1, iter=float, loss=loss),
        *("loss", STEP_BY_STEP),
    ),
    "rllib": (
        "result.json",
        rows(
            info={"learner": {"total_loss": 9.5}}, episode_reward_max=9.5, episode_reward_mean=loss,
            timesteps_total=lambda t: 3 * t, training_iteration=lambda t: t, config={"lr": 0.1},
        ),
        *("episode_reward_mean", [3.0 * t for t in EPOCHS]),
    ),
    "w&b history": (
        "wandb-history.jsonl",
        rows(_step=lambda t: t, _runtime=lambda t: 10.0 * t, train_loss=loss),
        *("train_loss", STEP_BY_STEP),
    ),
    "mlperf": (
        "result_0.txt",
        "+ srun -l\n" + "".join(mllog(t) + "\n" for t in EPOCHS),
        *("train_loss", [3.0 * t for t in EPOCHS]),
    ),
    "deepobs": (
        "random_seed__42.json",
        json.dumps(
            {"optimizer_name": "SGD", "train_losses": list(map(loss, EPOCHS)), "num_epochs": 12,
             "valid_losses": list(map(loss, EPOCHS)), "minibatch_train_losses": [1.5] * 40}
        ),
        *("train_losses", STEP_BY_STEP),
    ),
    "keras history": (
        "history.json",
        json.dumps({"loss": list(map(loss, EPOCHS)), "val_loss": [1.5] * 12}, indent=1),
        *("loss", STEP_BY_STEP),
    ),
    "rows in a document": (
        "training_log.json",
        json.dumps({"total": 12, "history": [{"round": t, "avg_loss": _LOSS[t]} for t in EPOCHS]}),
        *("avg_loss", STEP_BY_STEP),
    ),
    "epochs as keys": (
        "log.json",
        json.dumps({str(t): {"train": {"loss": _LOSS[t]}} for t in EPOCHS}),
        *("train/loss", STEP_BY_STEP),
    ),
    "pandas": ("a.csv", ",Loss,ValLoss\n" + lines("{t},{y},{v}"), "Loss", STEP_BY_STEP),
    "names": (
        "a.csv",
        "Epoch,Training Loss,Acc\n" + lines("{t},{y},{a}"),
        *("Training Loss", STEP_BY_STEP),
    ),
    "monitor": (
        "monitor.csv",
        '#{"t_start": 1713454733.7, "env_id": null}\nr,l,t\n' + lines("{y},3,0.5"),
        *("episode_reward", [3.0 * t for t in EPOCHS]),
    ),
    "baselines": (
        "progress.csv",
        "rollout/return,train/loss_actor,total/steps\n" + lines("{y},9.5,{u}"),
        *("rollout/return", [3.0 * t for t in EPOCHS]),
    ),
    "blanks": (
        "loss.txt",
        "# epoch   train_loss   lr\n" + lines("{t}   {y}   0.1"),
        *("train_loss", STEP_BY_STEP),
    ),
    "lightning": (
        "metrics.csv",
        "epoch,lr-Adam,step,train_loss_epoch,train_loss_step\n" + lines(",0.1,{t},,\n0,,{t},,{y}"),
        *("train_loss_step", STEP_BY_STEP),
    ),
    "tensors": ("a.csv", "step,loss\n" + lines("{t},tensor({y})"), "loss", STEP_BY_STEP),
}  # fmt: skip


@pytest.mark.parametrize("family", FILES)
def test_files_are_read_as_they_are(tmp_path: Path, family: str) -> None:
    name, text, metric, step = FILES[family]
    run = one(write(tmp_path / name, text))
    assert run.metric == metric
    assert run.step.tolist() == step
    assert run.loss.tolist() == [_LOSS[t] for t in EPOCHS]


def test_an_evaluation_of_llamafactory_has_no_loss(tmp_path: Path) -> None:
    text = rows(current_steps=lambda t: t, total_steps=63, percentage=lambda t: t / 63)
    with pytest.raises(gp.IoError, match=r"evaluations.* without a loss or a score"):
        gp.read_traces(write(tmp_path / "trainer_log.jsonl", text))


def test_a_loss_of_few_points_gives_way(tmp_path: Path) -> None:
    text = "step,train_loss,val_loss\n" + "".join(
        f"{t},{1.5 if t < 5 else ''},{_LOSS[t]}\n" for t in EPOCHS
    )
    assert one(write(tmp_path / "a.csv", text)).metric == "val_loss"


# ------------------------------------------------------------- what public repositories really hold


def test_public_logs_are_read_as_they_were_when_the_choices_were_reviewed(
    shared: Path, tmp_path: Path
) -> None:
    """No independent oracle: `wild_logs.csv` is what the reader took, its metrics reviewed."""
    archive = shared / "data" / "wild_logs.tar.gz"
    if not archive.exists():
        pytest.skip(f"no {archive.name} in ../shared/data")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    with (Path(__file__).parent / "wild_logs.csv").open(newline="") as file:
        expected = {
            row["file"]: (row["metric"], int(row["points"])) for row in csv.DictReader(file)
        }
    root = tmp_path / "wild_logs"
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "index.csv"]
    assert len(files) == len(expected) == 252
    wrong = []
    for path in files:
        name = path.relative_to(root).as_posix()
        try:
            (run,) = gp.read_traces(path)
            found = run.metric, len(run)
        except gp.IoError as error:  # any other exception fails the test
            found = "", str(error).count("\n")
        if found != expected[name]:
            wrong.append((name, found, expected[name]))
    assert not wrong
