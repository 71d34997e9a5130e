# SPDX-License-Identifier: Apache-2.0
"""What logs, and the files beside them, say of how a run was started: `Trace.settings`."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from wire import field, record, varint

import glidepath as gp
from glidepath import _core

TABLE = "epoch,step,train_loss\n" + "".join(f"0,{i},{3 / i}\n" for i in range(1, 21))
RESULTS = "epoch,train/box_loss\n" + "".join(f"{i},{3 / i}\n" for i in range(1, 21))
STATE = {
    "log_history": [{"step": i, "loss": 3 / i} for i in range(1, 21)],
    "max_steps": 40,
    "train_batch_size": 8,
    "num_train_epochs": 2,
    "trial_name": "x",
}
HPARAMS = """\
# written by a trainer
lr: 0.001
optimizer: adamw  # the second one
amp: true
resume: null
betas:
- 0.9
- 0.999
model:
  width: 256
  kind: 'mlp'
  dropout: 1.0e-1
tags: [a, b]
data_dir: /home/someone/data
checkpoint: runs/last.ckpt
notes: a long story of how it came to be
api_key: abc
hub_token: abc
password: 12345
seed: 3
"""
READ = {
    "lr": 0.001,
    "optimizer": "adamw",
    "amp": "True",
    "model.width": 256.0,
    "model.kind": "mlp",
    "model.dropout": 0.1,
    "seed": 3.0,
}


def event_file(losses: list[float]) -> bytes:
    data = record(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
    for step, loss in enumerate(losses, 1):
        value = field(1, b"loss") + b"\x15" + struct.pack("<f", loss)
        data += record(b"\x09" + bytes(8) + b"\x10" + varint(step) + field(5, field(1, value)))
    return data


def items(values: dict[str, object]) -> bytes:
    """Values as W&B's log has them, of its history and of its configuration."""
    return b"".join(
        field(1, field(1, name.encode()) + field(16, json.dumps(value).encode()))
        for name, value in values.items()
    )


def wandb_file(rows: list[dict[str, object]], *first: bytes) -> bytes:
    data = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
    for message in (*first, *(field(2, items(row)) for row in rows)):
        crc = zlib.crc32(b"\x01" + message)
        data += struct.pack("<IHB", crc, len(message), 1) + message
    return data


def settings_of(path: Path) -> dict[str, float | str]:
    (run,) = gp.read_traces(path)
    assert len(run) > 0
    return dict(run.settings)


def read_yaml(folder: Path, text: str | bytes) -> tuple[dict[str, float | str], list[str]]:
    file = folder / "hparams.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return _core.settings_of_file(os.fsencode(file))


def test_the_tools_write_them_beside_their_tables(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(TABLE)
    (tmp_path / "hparams.yaml").write_text(HPARAMS)
    assert settings_of(tmp_path / "metrics.csv") == READ == settings_of(tmp_path)
    other = tmp_path / "yolo"
    other.mkdir()
    (other / "results.csv").write_text(RESULTS)
    (other / "args.yaml").write_text("task: detect\nepochs: 30\nlr0: 0.01\nmodel: yolov8n.pt\n")
    (run,) = gp.read_traces(other / "results.csv")
    assert run.settings == {"task": "detect", "epochs": 30, "lr0": 0.01, "model": "yolov8n.pt"}
    assert run.planned_steps == 30
    (other / "own.csv").write_text(RESULTS)  # of which nobody knows that they are its arguments
    assert settings_of(other / "own.csv") == {}


def test_an_event_folder_has_those_of_its_logger(tmp_path: Path) -> None:
    events = event_file([3 / i for i in range(1, 21)])
    (tmp_path / "events.out.tfevents.1.a").write_bytes(events)
    (tmp_path / "hparams.yaml").write_text(HPARAMS)
    assert settings_of(tmp_path) == READ


def test_the_trainer_says_some_itself_and_more_beside(tmp_path: Path) -> None:
    state = tmp_path / "trainer_state.json"
    state.write_text(json.dumps(STATE))
    own = {"max_steps": 40, "train_batch_size": 8, "num_train_epochs": 2}
    assert settings_of(state) == own
    arguments = {
        "learning_rate": 5e-5,
        "optim": "adamw_torch",
        "bf16": True,
        "max_steps": -1,
        "output_dir": "out",
        "hub_token": "hf_x",
        "label_names": None,
        "lr_scheduler_kwargs": {"num_cycles": 2},
    }
    (tmp_path / "training_args.json").write_text(json.dumps(arguments))
    model = {"hidden_size": 768, "model_type": "bert", "id2label": {"0": "a", "1": "b"}}
    (tmp_path / "config.json").write_text(json.dumps(model))
    assert settings_of(state) == own | {
        "learning_rate": 5e-5,
        "optim": "adamw_torch",
        "bf16": "True",
        "lr_scheduler_kwargs.num_cycles": 2,
        "hidden_size": 768,
        "model_type": "bert",
    }


def test_mlflow_has_parameters_in_files_and_in_its_database(tmp_path: Path) -> None:
    run = tmp_path / "mlruns" / "0" / "a1"
    (run / "metrics").mkdir(parents=True)
    (run / "params" / "model").mkdir(parents=True)
    rows = [f"16000000000{i:02} {3 / i} {i}\n" for i in range(1, 21)]
    (run / "metrics" / "loss").write_text("".join(rows))
    params = {
        "lr": "0.1",
        "optimizer": "sgd",
        "nesterov": "True",
        "password": "x",
        "max_steps": "50",
    }
    for name, value in (params | {"model/width": "64", "data": "/a/b", "long": "9" * 5000}).items():
        (run / "params" / name).write_text(value)
    (run / "params" / os.fsdecode(b"caf\xe9")).write_bytes(b"\xff\xfe")
    expected: dict[str, object] = {
        "lr": 0.1,
        "optimizer": "sgd",
        "nesterov": "True",
        "max_steps": 50,
    }
    assert settings_of(tmp_path / "mlruns") == expected | {"model/width": 64}
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        base.execute("CREATE TABLE runs (run_uuid, start_time, lifecycle_stage)")
        base.execute("CREATE TABLE metrics (run_uuid, key, value, timestamp, step, is_nan)")
        base.execute("INSERT INTO runs VALUES ('a1', 0, 'active')")
        points = [("a1", "loss", 3 / i, i * 1000, i, 0) for i in range(1, 21)]
        base.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", points)
    base.close()
    assert settings_of(tmp_path / "mlflow.db") == {}
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        base.execute("CREATE TABLE params (key, value, run_uuid)")
        base.executemany("INSERT INTO params VALUES (?, ?, 'a1')", params.items())
        base.execute("INSERT INTO params VALUES (7, x'00', 'a1')")
    base.close()
    assert settings_of(tmp_path / "mlflow.db") == expected
    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        base.execute("DROP TABLE params")
        base.execute("CREATE TABLE params (other)")
    base.close()
    (damaged,) = gp.read_traces(tmp_path / "mlflow.db")
    assert damaged.settings == {}
    assert any("no settings were read of the table params" in note for note in damaged.notes)


def test_wandb_has_its_configuration_in_the_log_or_in_files(tmp_path: Path) -> None:
    log = tmp_path / "run-a1.wandb"
    rows: list[dict[str, object]] = [{"_step": i, "loss": 3 / i} for i in range(1, 21)]
    started = field(17, field(1, b"a1") + field(4, items({"lr": 0.3, "model": {"width": 8}})))
    changed = field(5, items({"lr": 0.1, "opt": "None"}))
    log.write_bytes(wandb_file(rows, started, changed))
    assert settings_of(log) == {"lr": 0.1, "model.width": 8}
    log.write_bytes(wandb_file(rows))
    (tmp_path / "files").mkdir()
    written = (
        "wandb_version: 1\n\n_wandb:\n  desc: null\n  value:\n    cli_version: 0.16\n    t:\n"
        "      1:\n      - 1\nlr:\n  desc: null\n  value: 0.2\n"
        "model:\n    value:\n        width: 16\nwandb_api_key:\n  value: abc\n"
    )
    (tmp_path / "files" / "config.yaml").write_text(written)
    assert settings_of(log) == {"lr": 0.2, "model.width": 16}
    history = tmp_path / "files" / "wandb-history.jsonl"
    history.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert settings_of(history) == {"lr": 0.2, "model.width": 16}


def test_a_run_of_a_server_has_its_configuration() -> None:
    rows = [{"_step": i, "loss": 3 / i} for i in range(1, 21)]
    endless: list[object] = []
    endless.append(endless)
    config = {"lr": 0.1, "opt": "sgd", "token": "x", "when": object(), "in itself": endless}
    config["odd"] = {(1, 2): 3}
    run = SimpleNamespace(scan_history=lambda: rows, name="a", path=["e", "p", "a"], config=config)
    (found,) = gp.read_traces(run)
    assert found.settings == {"lr": 0.1, "opt": "sgd"}


@pytest.mark.parametrize(
    "first",
    [
        {"lr": 0.1, "optimizer": "sgd", "net": {"width": 8}, "api_key": "x"},
        {"config": {"lr": 0.1, "optimizer": "sgd", "net": {"width": 8}}},
        {"step": 0, "loss": 4.0, "args": {"lr": 0.1, "optimizer": "sgd", "net": {"width": 8}}},
        {"hyperparameters": {"lr": 0.1, "optimizer": "sgd"}, "settings": {"net": {"width": 8}}},
    ],
)
def test_lines_of_json_may_begin_with_a_configuration(tmp_path: Path, first: object) -> None:
    rows = [first, *({"step": i, "loss": 3 / i, "lr": 0.5} for i in range(1, 21))]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert settings_of(tmp_path / "log.jsonl") == {"lr": 0.1, "optimizer": "sgd", "net.width": 8}
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    assert settings_of(tmp_path / "log.jsonl") == {}


def test_a_first_line_of_settings_is_no_metric(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    first = {"lr": 0.1, "width": 8, "optimizer": "sgd"}
    rows = [first, *({"step": 10 * i, "loss": 3 / i, "lr": 0.5} for i in range(1, 21))]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [(each.metric, each.points) for each in gp.metrics_of(file)]
    assert found == [("lr", 20), ("loss", 20)]
    assert settings_of(file) == first
    with pytest.raises(gp.IoError, match="width"):
        gp.read_traces(file, metric="width")
    unknown = [{"flops": 4.0}, {"flops": 3.0, "gain": 1.0}]  # neither steps nor known metrics
    file.write_text("".join(json.dumps(row) + "\n" for row in unknown))
    assert [len(run) for run in gp.read_traces(file, metric="flops", format="jsonl")] == [2]


LOSSES = [3.0 / i for i in range(1, 21)]
ROWS = [{"epoch": i, "loss": loss} for i, loss in enumerate(LOSSES)]


@pytest.mark.parametrize(
    "key", ["config", "args", "hparams", "params", "settings", "hyperparameters"]
)
@pytest.mark.parametrize(
    "history", [{"loss": LOSSES}, {"history": {"loss": LOSSES}}, {"log": ROWS}]
)
def test_a_document_may_have_a_configuration_beside_its_history(
    tmp_path: Path, key: str, history: dict[str, object]
) -> None:
    config = {"lr": 0.1, "optimizer": "adam", "betas": [0.9, 0.999], "amp": True, "api_key": "x"}
    log = tmp_path / "log.json"
    log.write_text(json.dumps({key: config | {"net": {"width": 8}}} | history))
    (run,) = gp.read_traces(log)
    assert (len(run), run.metric) == (20, "loss")
    assert run.settings == {"lr": 0.1, "optimizer": "adam", "amp": "True", "net.width": 8}
    log.write_text(json.dumps({key: 3} | history))
    assert settings_of(log) == {}


def test_each_run_of_a_document_has_its_own_configuration(tmp_path: Path) -> None:
    runs = [{"config": {"lr": lr}, "history": {"loss": LOSSES}} for lr in (0.1, 0.2)]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"config": {"lr": 1, "task": "mnist"}, "runs": runs}))
    assert [run.settings for run in gp.read_traces(log)] == [
        {"lr": 0.1, "task": "mnist"},
        {"lr": 0.2, "task": "mnist"},
    ]


def test_a_column_of_a_document_that_names_the_optimizer_is_a_setting(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    rows = [row | {"optimizer": name} for name in ("sgd", "adam") for row in ROWS]
    log.write_text(json.dumps(rows))
    settings = {run.name: run.settings for run in gp.read_traces(log)}
    assert settings == {"sgd": {"optimizer": "sgd"}, "adam": {"optimizer": "adam"}}
    log.write_text(json.dumps(rows[:20]))
    assert settings_of(log) == {"optimizer": "sgd"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lr: 0.1\n- 3\n", "line 2 is not 'key: value'"),
        ("lr: 0.1\nlr: 0.2\n", "line 2 is not 'key: value'"),
        ("a:\n    b: 1\n  c: 2\n", "line 3 is not 'key: value'"),
        ("a:\n\tb: 1\nlr: 1\n", "line 2 is not 'key: value'"),
        ("lr: 0.1\n---\nlr: 0.2\n", "line 2 is not 'key: value'"),
        ("? a\n: b\n", "line 1 is not 'key: value'"),
        (b"\x00\xff\xfe\x01" * 50, ""),
        (b"lr: \xff\n", "not UTF-8"),
        (b"\x1f\x8b" + b"\x00" * 30, ""),
        ("a: 1\n" + "#" * (1 << 20), "more than 1 MiB"),
    ],
)
def test_a_damaged_file_beside_a_good_log_is_a_note(
    tmp_path: Path, text: str | bytes, why: str
) -> None:
    (tmp_path / "metrics.csv").write_text(TABLE)
    assert read_yaml(tmp_path, text)[0] == {}
    (run,) = gp.read_traces(tmp_path / "metrics.csv")
    assert (len(run), run.settings) == (20, {})
    assert any(f"no settings were read of hparams.yaml: {why}" in note for note in run.notes)


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text(TABLE)
    os.mkfifo(tmp_path / "hparams.yaml")  # nobody ever writes to it
    (run,) = gp.read_traces(tmp_path / "metrics.csv")
    assert (len(run), run.settings) == (20, {})
    assert any("not a regular file" in note for note in run.notes)


def test_what_is_more_than_a_value_is_left_out_alone(tmp_path: Path) -> None:
    text = (
        "a: &mark 1\nb: *mark\nc: !!python/object:x.Y\n  lr: 3\nd: |\n  lr: 4\n  - x\n"
        "e: plain\n  goes on\nf: 'it''s'\ng: {x: 1}\nh: [1,\n  2]\ni: 010\nj: 0x1f\nk: 1_000\n"
        'l: .inf\nm: .nan\nn: 12:30\no: "a\\tb"\np:\n- x: 1\n  y: 2\nlr: -2.5E-3\n'
    )
    assert read_yaml(tmp_path, text) == ({"lr": -0.0025}, [])
    assert read_yaml(tmp_path, "{}\n") == ({}, [])
    assert read_yaml(tmp_path, "") == ({}, [])
    deep = "".join("  " * i + f"a{i}:\n" for i in range(200)) + "  " * 200 + "x: 1\n"
    assert read_yaml(tmp_path, deep + "lr: 1\n") == ({"lr": 1}, [])


@pytest.mark.parametrize(
    "name", ["hub_token", "apiKey", "AWS_SECRET_ACCESS_KEY", "db.password", "myPassword", "auth"]
)
@pytest.mark.parametrize("value", ["abc", 12345])
def test_a_secret_is_no_setting(name: str, value: object) -> None:
    assert _core.settings_of_json({name: json.dumps(value), "max_tokens": "7"}) == {"max_tokens": 7}


@pytest.mark.parametrize(
    "value",
    ["/a", "a/b", "C:\\a", "https://x", "two words", "x" * 33, "", "AKIA1234567890ABCDEF", "é"],
)
def test_what_is_no_short_word_is_no_setting(value: str) -> None:
    assert _core.settings_of_texts({"optimizer": value}) == {}


def test_there_is_an_end_to_how_many_settings_a_run_has() -> None:
    assert len(_core.settings_of_texts({f"a{i}": "1" for i in range(5000)})) == 256


WORDS = st.sampled_from(["adam", "sgd", "b-1", "cos_2", "v1.2"])
VALUES = st.one_of(st.booleans(), WORDS, st.integers(-9999, 9999), st.floats(-1e9, 1e9).map(float))
TREES = st.recursive(
    VALUES,
    lambda inner: st.dictionaries(st.sampled_from("abcdefgh"), inner, min_size=1, max_size=4),
    max_leaves=12,
)


def flattened(tree: dict[str, object], within: str = "") -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            found |= flattened(value, f"{within}{name}.")
        else:
            found[within + name] = str(value) if isinstance(value, (bool, str)) else float(value)  # type: ignore[arg-type]
    return found


@given(st.dictionaries(st.sampled_from("abcdefgh"), TREES, max_size=6), st.booleans())
def test_what_pyyaml_writes_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object], sort: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = yaml.safe_dump(tree, sort_keys=sort)
    assert read_yaml(folder, text) == (flattened(tree), [])


@given(st.text(st.sampled_from("ab:-#'\"{}[]|>&*!?, \t\n01.é"), max_size=80))
def test_where_text_is_read_at_all_pyyaml_reads_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    found, _ = read_yaml(tmp_path_factory.getbasetemp(), text)
    try:
        whole = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return  # what PyYAML refuses may have entries that can be told
    for name, value in found.items():
        if isinstance(value, float) and isinstance(whole, dict) and name in whole:
            assert whole[name] == value


def test_runs_read_of_folders_teach_by_their_settings(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    for i in range(16):
        lr, opt = 10 ** draw.uniform(-4, -1), ("adam", "sgd")[i % 2]
        steps = np.arange(1, 61)
        loss = 1.5 + 0.3 * np.log10(lr) + 3 * steps**-0.8 + 0.01 * draw.standard_normal(60)
        folder = tmp_path / f"version_{i}"
        folder.mkdir()
        rows = "".join(f"0,{step},{each}\n" for step, each in zip(steps, loss, strict=True))
        (folder / "metrics.csv").write_text("epoch,step,train_loss\n" + rows)
        (folder / "hparams.yaml").write_text(f"lr: {lr}\noptimizer: {opt}\nbatch: 8\n")
    past = gp.PastRuns(gp.read_traces(tmp_path))
    assert set(past.relevance) == {"lr", "optimizer"}  # all have the same batch
    assert past.relevance["lr"] > past.relevance["optimizer"]
    low, high = (
        gp.forecast(gp.Trace([], [], settings={"lr": lr, "optimizer": "sgd"}), [60], past=past)
        for lr in (2e-4, 5e-2)
    )
    assert low.median[0] < high.median[0] - 0.3
